#include "http/problem.h"
#include "http/routes/routes.h"

namespace millrace::http {
namespace {

using std::chrono::milliseconds;

/// A rebalance is waited for at least so long, however short the wait that the member asked for.
constexpr milliseconds kRebalanceWait{10'000};

constexpr auto kAssignmentSchema = R"({"type":"array","items":{"type":"object","required":["topic","partitions"],
  "properties":{"topic":{"type":"string"},"partitions":{"type":"array","items":{"type":"integer"}}}}})";
constexpr auto kMemberSchema = R"({"type":"object","required":["memberId","generation","assignment"],"properties":{
  "group":{"type":"string"},"memberId":{"type":"string"},"generation":{"type":"integer"},"protocol":{"type":"string"},
  "topics":{"type":"array","items":{"type":"string"}},"sessionTimeout":{"type":"string"},
  "rebalanceTimeout":{"type":"string"},"assignment":{"$ref":"#/components/schemas/Assignment"}}})";
constexpr auto kMember = R"({"$ref":"#/components/schemas/GroupMember"})";
constexpr auto kGroupSchema = R"({"type":"object","required":["group","state","generation","members","partitions"],
  "properties":{"group":{"type":"string"},"state":{"enum":["Empty","PreparingRebalance","CompletingRebalance","Stable","Dead"]},
  "generation":{"type":"integer"},"protocolType":{"type":"string"},"protocol":{"type":"string"},
  "members":{"type":"array","items":{"type":"object","properties":{"memberId":{"type":"string"},
    "clientId":{"type":"string"},"clientHost":{"type":"string"},"instanceId":{"type":"string"},
    "sessionTimeout":{"type":"string"},"rebalanceTimeout":{"type":"string"},"leader":{"type":"boolean"},
    "assignment":{"$ref":"#/components/schemas/Assignment"}}}},
  "partitions":{"type":"array","items":{"type":"object","properties":{"topic":{"type":"string"},
    "partition":{"type":"integer"},"logStartOffset":{"type":"string"},"logEndOffset":{"type":"string"},
    "offset":{"type":"string"},"lag":{"type":"string"},"leaderEpoch":{"type":"integer"},"metadata":{"type":"string"},
    "committedAt":{"type":"string"},"memberId":{"type":"string"}}}},
  "totalLag":{"type":"string"}}})";
constexpr auto kListSchema = R"({"type":"object","required":["groups"],"properties":{"groups":{"type":"array","items":{
  "type":"object","properties":{"group":{"type":"string"},"state":{"type":"string"},"generation":{"type":"integer"},
  "members":{"type":"integer"},"protocolType":{"type":"string"}}}},"next":{"type":"string"}}})";
constexpr auto kResetSchema = R"({"type":"object","required":["to"],"additionalProperties":false,"properties":{
  "topic":{"type":"string"},"topics":{"type":"array","items":{"type":"string"}},
  "partitions":{"type":"array","items":{"type":"integer"}},"dryRun":{"type":"boolean"},
  "to":{"oneOf":[{"enum":["earliest","latest"]},{"type":"object","properties":{"offset":{"type":["integer","string"]},
  "time":{"type":["integer","string"]}}}]}}})";
constexpr auto kMovesSchema =
    R"({"type":"object","properties":{"dryRun":{"type":"boolean"},"partitions":{"type":"array",
  "items":{"type":"object","properties":{"topic":{"type":"string"},"partition":{"type":"integer"},
  "from":{"type":["string","null"]},"to":{"type":"string"}}}}}})";
constexpr auto kJoinSchema = R"({"type":"object","required":["topics"],"additionalProperties":false,"properties":{
  "topics":{"type":"array","minItems":1,"items":{"type":"string"}},"clientId":{"type":"string"},
  "instanceId":{"type":"string"},"sessionTimeout":{"type":"string"},"rebalanceTimeout":{"type":"string"},
  "autoOffsetReset":{"enum":["earliest","latest","none"]}}})";
constexpr auto kReadSchema = R"({"type":"object","required":["generation","assignment","records","next"],"properties":{
  "generation":{"type":"integer"},"assignment":{"$ref":"#/components/schemas/Assignment"},
  "records":{"type":"array","items":{"$ref":"#/components/schemas/Record"}},"next":{"type":"array","items":{
  "type":"object","properties":{"topic":{"type":"string"},"partition":{"type":"integer"},"offset":{"type":"string"}}}}}})";
constexpr auto kCommitSchema = R"({"type":"object","required":["offsets"],"additionalProperties":false,"properties":{
  "generation":{"type":["integer","string"]},"offsets":{"type":"array","minItems":1,"items":{"type":"object",
  "required":["topic","partition","offset"],"additionalProperties":false,"properties":{"topic":{"type":"string"},
  "partition":{"type":"integer"},"offset":{"type":["integer","string"]},"metadata":{"type":"string"},
  "leaderEpoch":{"type":"integer"}}}}}})";

Param group_param() {
  return Param::string("group", "The group's name.").range(1, bus::Home::kMaxIdBytes);
}
Param member_param() {
  return Param::string("member", "The member's id.").range(1, 512);
}
Route::Problem unknown_group() {
  return {ErrorKind::kNotFound, "UNKNOWN_GROUP", "there is no such group"};
}
Route::Problem unknown_member() {
  return {ErrorKind::kNotFound, "UNKNOWN_MEMBER_ID", "the group has no such member (any more): join anew"};
}
Route::Problem not_empty() {
  return {ErrorKind::kConflict, "GROUP_NOT_EMPTY", "the group has members"};
}

api::Reply reply_with(int status, Responder responder) {
  return [status, responder](Result<std::string> result) {
    if (!result) return responder.fail(result.error());
    if (result->empty()) return responder.respond(Response::no_content());
    responder.respond(Response::json(status, *std::move(result)));
  };
}

Handler answer_json(std::function<Result<std::string>(Request&)> fn) {
  return answer_now([fn = std::move(fn)](Request& request) -> Result<Response> {
    auto json = fn(request);
    if (!json) return tl::unexpected(std::move(json.error()));
    return Response::json(200, *std::move(json));
  });
}

/// One read of a member: joins what rebalance there is, reads, and waits for records, the next rebalance, the time, the
/// client or the server. While it waits the member is held. What it waits for keeps it alive; everything but start()
/// runs on the request's io thread.
class MemberPoll : public std::enable_shared_from_this<MemberPoll> {
 public:
  MemberPoll(api::GroupsApi& groups, bus::CommitLog& log, const Request& request, Responder responder)
      : groups_(groups),
        log_(log),
        group_(request.params.string("group")),
        member_(request.params.string("member")),
        limit_(static_cast<size_t>(request.params.integer("limit"))),
        max_bytes_(static_cast<size_t>(request.params.size("maxBytes"))),
        responder_(std::move(responder)) {}

  void start(milliseconds wait) {
    auto self = shared_from_this();
    responder_.on_cancel([self](CancelReason) { self->out_of_time(); });
    responder_.after(std::max(wait, kRebalanceWait), [self] { self->out_of_time(); });
    if (wait.count() > 0)
      responder_.after(wait, [self] {
        self->waited_ = true;
        if (self->membership_) self->out_of_time();
      });
    waited_ = wait.count() == 0;
    settle();
  }

 private:
  void settle() {
    membership_.reset();
    groups_.settle(group_, member_, [self = shared_from_this()](Result<group::Membership> settled) {
      self->responder_.post([self, settled = std::move(settled)]() mutable { self->settled(std::move(settled)); });
    });
  }

  void settled(Result<group::Membership> settled) {
    if (finished_) return;
    if (!settled) return fail(settled.error());
    membership_ = *std::move(settled);
    read();
  }

  void read() {
    if (finished_ || !membership_) return;
    let_go();
    auto found = groups_.read(*membership_, limit_, max_bytes_);
    if (!found) return fail(found.error());
    if (!found->empty || waited_) return answer(std::move(found->json));
    auto self = shared_from_this();
    const uint64_t round = ++round_;
    hold_ = groups_.hold(*membership_, [self, round] {
      self->responder_.post([self, round] {
        if (round != self->round_ || self->finished_) return;
        self->let_go();
        self->settle();
      });
    });
    auto watch = log_.watch(std::move(found->at), [self, round] {
      self->responder_.post([self, round] {
        if (round != self->round_) return;
        // A topic that went away would wake for ever; after this the answer says what is left.
        self->waited_ = true;
        self->read();
      });
    });
    if (!watch) return fail(watch.error());
    watch_ = *std::move(watch);
  }

  void out_of_time() {
    if (finished_) return;
    if (!membership_)
      return fail({ErrorKind::kConflict, "REBALANCE_IN_PROGRESS",
                   "group '" + group_ + "' is still rebalancing; ask again, the member takes part in it"});
    waited_ = true;
    read();
  }

  void let_go() {
    ++round_;
    watch_.reset();
    hold_.reset();
  }
  void answer(std::string json) {
    finished_ = true;
    let_go();
    responder_.try_respond(Response::json(200, std::move(json)));
  }
  void fail(const Error& error) {
    finished_ = true;
    let_go();
    responder_.respond(tl::unexpected(error));
  }

  api::GroupsApi& groups_;
  bus::CommitLog& log_;
  const std::string group_, member_;
  const size_t limit_, max_bytes_;
  const Responder responder_;
  std::optional<group::Membership> membership_;
  std::unique_ptr<group::Coordinator::Hold> hold_;
  std::unique_ptr<bus::Watch> watch_;
  uint64_t round_ = 0;   ///< wake-ups of earlier rounds mean nothing
  bool waited_ = false;  ///< the wait is over: whatever is there is the answer
  bool finished_ = false;
};

void add_group_collection(Router& router, api::GroupsApi& groups) {
  router.add({.path = "/v1/groups",
              .operation_id = "listGroups",
              .tag = "groups",
              .summary = "Lists consumer groups by name",
              .params = {Param::integer("limit", "How many at most.").range(1, 1000).otherwise("100"),
                         Param::string("after", "Only groups whose name is greater.").range(1, bus::Home::kMaxIdBytes)},
              .answers = {{200, "Groups, and `next` to pass as `after` when there are more.", kListSchema}},
              .handler = answer_json([&groups](Request& request) -> Result<std::string> {
                return groups.list(std::string(request.params.find_string("after").value_or("")),
                                   static_cast<size_t>(request.params.integer("limit")));
              })});
  router.add({.path = "/v1/groups/{group}",
              .operation_id = "getGroup",
              .tag = "groups",
              .summary = "Shows a group: members, assignments, committed offsets, lag",
              .params = {group_param()},
              .answers = {{200, "The group.", R"({"$ref":"#/components/schemas/Group"})"}},
              .problems = {unknown_group()},
              .handler = answer_json(
                  [&groups](Request& request) { return groups.get(std::string(request.params.string("group"))); })});
  router.add({.method = Method::kDelete,
              .path = "/v1/groups/{group}",
              .operation_id = "deleteGroup",
              .tag = "groups",
              .summary = "Deletes a group without members, and its offsets",
              .params = {group_param()},
              .answers = {{204, "It is gone."}},
              .problems = {unknown_group(), not_empty()},
              .handler = [&groups](Request request, Responder responder) {
                groups.remove(std::string(request.params.string("group")), reply_with(204, std::move(responder)));
              }});
  router.add({.method = Method::kPost,
              .path = "/v1/groups/{group}:resetOffsets",
              .operation_id = "resetGroupOffsets",
              .tag = "groups",
              .summary = "Moves a group's committed offsets",
              .description = "To the earliest or latest record, an offset or a time, of topics or of all that the "
                             "group has offsets for. Only while the group is Empty.",
              .params = {group_param()},
              .body = BodyRule::kRequired,
              .request_schema = kResetSchema,
              .answers = {{200, "From where to where each partition goes, or would go with dryRun.", kMovesSchema}},
              .problems = {unknown_group(),
                           not_empty(),
                           {ErrorKind::kNotFound, "UNKNOWN_TOPIC", "there is no such topic"},
                           {ErrorKind::kNotFound, "UNKNOWN_PARTITION", "the topic has no such partition"},
                           {ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE", "the partition has no such offset"}},
              .handler = [&groups](Request request, Responder responder) {
                groups.reset_offsets(std::string(request.params.string("group")), request.body,
                                     reply_with(200, std::move(responder)));
              }});
}

void add_member_routes(Router& router, api::GroupsApi& groups, bus::CommitLog& log, RecordLimits limits) {
  const Route::Problem rebalancing{ErrorKind::kConflict, "REBALANCE_IN_PROGRESS", "the group is rebalancing"};
  router.add(
      {.method = Method::kPost,
       .path = "/v1/groups/{group}/members",
       .operation_id = "joinGroup",
       .tag = "groups",
       .summary = "Joins a group as a consumer over HTTP",
       .description = "Answers when the member has its assignment, which may take until the other members have "
                      "joined the rebalance. A member with an instanceId that joins again takes its own place.",
       .params = {group_param()},
       .body = BodyRule::kRequired,
       .request_schema = kJoinSchema,
       .answers = {{201, "The member.", kMember}},
       .problems = {{ErrorKind::kNotFound, "UNKNOWN_TOPIC", "there is no such topic"},
                    {ErrorKind::kConflict, "INCONSISTENT_GROUP_PROTOCOL", "its members assign in other ways"},
                    {ErrorKind::kExhausted, "GROUP_MAX_SIZE_REACHED", "the group is full"},
                    {ErrorKind::kExhausted, "TOO_MANY_GROUPS", "the node's bound is reached"},
                    {ErrorKind::kFenced, "FENCED_INSTANCE_ID", "the instance joined once more meanwhile"},
                    {ErrorKind::kInvalidArgument, "INVALID_SESSION_TIMEOUT", "out of the node's bounds"}},
       .handler = [&groups](Request request, Responder responder) {
         // The others may take their time; a server that stops does not wait for them.
         responder.on_cancel([responder](CancelReason) {
           responder.try_respond(problem(Error{ErrorKind::kUnavailable, "STOPPING", "the node is stopping", {}}));
         });
         groups.join(
             std::string(request.params.string("group")), request.body, request.peer,
             [responder](Result<std::string> member) {
               return responder.try_respond(member ? Response::json(201, *std::move(member)) : problem(member.error()));
             });
       }});
  router.add({.path = "/v1/groups/{group}/members/{member}",
              .operation_id = "getGroupMember",
              .tag = "groups",
              .summary = "Shows a member over HTTP",
              .params = {group_param(), member_param()},
              .answers = {{200, "The member.", kMember}},
              .problems = {unknown_group(), unknown_member()},
              .handler = answer_json([&groups](Request& request) {
                return groups.member(std::string(request.params.string("group")),
                                     std::string(request.params.string("member")));
              })});
  router.add({.method = Method::kDelete,
              .path = "/v1/groups/{group}/members/{member}",
              .operation_id = "leaveGroup",
              .tag = "groups",
              .summary = "Leaves the group",
              .params = {group_param(), member_param()},
              .answers = {{204, "It has left."}},
              .problems = {unknown_group(), unknown_member()},
              .handler = answer_now([&groups](Request& request) -> Result<Response> {
                MILLRACE_TRY(groups.leave(std::string(request.params.string("group")),
                                          std::string(request.params.string("member"))));
                return Response::no_content();
              })});
  router.add({.path = "/v1/groups/{group}/members/{member}/records",
              .operation_id = "readGroupRecords",
              .tag = "groups",
              .summary = "Reads on from the committed offsets of the member's partitions",
              .description = "It is the member's heartbeat, and joins a rebalance by itself. The position moves on "
                             "commit only: what is not committed comes again.",
              .params = {group_param(), member_param(),
                         Param::integer("limit", "How many records at most.").range(1, 10'000).otherwise("500"),
                         Param::size("maxBytes", "Bytes of record batches at most; the first one always comes.")
                             .range(1, static_cast<int64_t>(limits.max_fetch_bytes))
                             .otherwise(std::to_string(std::min<size_t>(limits.max_fetch_bytes, 1 << 20)) + "B"),
                         Param::duration("wait", "When there is nothing yet, waits so long for records.")
                             .range(0, limits.max_wait.count())
                             .otherwise("0ms")},
              .answers = {{200, "Records, and in `next` what to commit behind them.", kReadSchema}},
              .problems = {unknown_group(),
                           unknown_member(),
                           rebalancing,
                           {ErrorKind::kConflict, "NO_COMMITTED_OFFSET", "the member resets to none"},
                           {ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE",
                            "retention has passed the committed offset, and the member resets to none"},
                           {ErrorKind::kFenced, "FENCED_INSTANCE_ID", "the instance has joined anew"},
                           {ErrorKind::kCorruption, "LOG_DAMAGED", "the stored bytes are not what was written"},
                           {ErrorKind::kUnsupported, "COMPRESSED_BATCH", "a Kafka client compressed the batch"}},
              .handler = [&groups, &log](Request request, Responder responder) {
                const auto wait = request.params.duration("wait");
                std::make_shared<MemberPoll>(groups, log, request, std::move(responder))->start(wait);
              }});
  router.add({.method = Method::kPost,
              .path = "/v1/groups/{group}/members/{member}/offsets",
              .operation_id = "commitGroupOffsets",
              .tag = "groups",
              .summary = "Commits offsets; all of them or none",
              .description = "The `next` of a read can be posted back as `offsets`. Give the generation of that read: "
                             "then nothing is committed for a partition that went to another member meanwhile.",
              .params = {group_param(), member_param()},
              .body = BodyRule::kRequired,
              .request_schema = kCommitSchema,
              .answers = {{204, "They are on disk."}},
              .problems = {unknown_group(),
                           unknown_member(),
                           rebalancing,
                           {ErrorKind::kConflict, "ILLEGAL_GENERATION", "the group has gone on since"},
                           {ErrorKind::kConflict, "PARTITION_NOT_ASSIGNED", "it belongs to another member"},
                           {ErrorKind::kInvalidArgument, "OFFSET_OUT_OF_RANGE", "behind the log's end"},
                           {ErrorKind::kInvalidArgument, "OFFSET_METADATA_TOO_LARGE", "over 4096 bytes"}},
              .handler = [&groups](Request request, Responder responder) {
                groups.commit(std::string(request.params.string("group")), std::string(request.params.string("member")),
                              request.body, reply_with(204, std::move(responder)));
              }});
}

}  // namespace

void add_group_routes(Router& router, api::GroupsApi& groups, bus::CommitLog& log, RecordLimits limits) {
  router.add_schema("Assignment", kAssignmentSchema);
  router.add_schema("GroupMember", kMemberSchema);
  router.add_schema("Group", kGroupSchema);
  add_group_collection(router, groups);
  add_member_routes(router, groups, log, limits);
}

}  // namespace millrace::http
