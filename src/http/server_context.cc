#include "http/server_context.h"

#include "base/bytes.h"
#include "base/uuid.h"

namespace millrace::http {

ConnectionTable::Verdict ConnectionTable::admit(const std::string& address) {
  MutexLock lock(mutex_);
  if (total_ >= max_) return Verdict::kTooMany;
  if (!address.empty()) {
    size_t& count = by_address_[address];
    if (count >= max_per_address_) return Verdict::kTooManyFromAddress;
    ++count;
  }
  ++total_;
  return Verdict::kAdmitted;
}

void ConnectionTable::release(const std::string& address) {
  MutexLock lock(mutex_);
  --total_;
  auto entry = by_address_.find(address);
  if (entry != by_address_.end() && --entry->second == 0) by_address_.erase(entry);
}

ServerContext::ServerContext(Options server_options, std::shared_ptr<const Router> server_router,
                             AccessPolicy server_policy)
    : options(std::move(server_options)),
      router(std::move(server_router)),
      policy(std::move(server_policy)),
      stats(std::make_shared<Stats>()),
      connections(options),
      run_id(to_hex(Uuid::random().view().substr(0, 4))) {}

}  // namespace millrace::http
