#include "http/problem.h"
#include "http/routes/routes.h"

namespace millrace::http {
namespace {

constexpr auto kBackupSchema =
    R"({"type":"object","required":["name","state","path","createdAt"],"properties":{"name":{"type":"string"},
  "state":{"enum":["RUNNING","COMPLETE","FAILED"]},"path":{"type":"string"},"node":{"type":"string"},
  "createdAt":{"type":"string","format":"date-time"},"version":{"type":"string"},"files":{"type":"integer"},
  "bytes":{"type":"string"},"error":{"type":"string"}}})";
constexpr auto kBackup = R"({"$ref":"#/components/schemas/Backup"})";

Param name_param() {
  return Param::string("backup", "The backup's name.").range(1, 64);
}

Route::Problem unknown_backup() {
  return {ErrorKind::kNotFound, "UNKNOWN_BACKUP", "there is no such backup"};
}

void get(api::BackupsApi& backups, const Request& request, const Responder& responder) {
  const std::string name(request.params.string("backup"));
  auto answer = [&backups, name, responder] {
    auto json = backups.get(name);
    responder.try_respond(json ? Response::json(200, *std::move(json)) : problem(json.error()));
  };
  const auto wait = request.params.duration("wait");
  if (wait.count() == 0) return answer();
  responder.on_cancel([answer](CancelReason) { answer(); });
  responder.after(wait, answer);
  backups.when_done(name, [responder, answer] { responder.post(answer); });
}

}  // namespace

void add_backup_routes(Router& router, api::BackupsApi& backups, std::chrono::milliseconds max_wait) {
  router.add_schema("Backup", kBackupSchema);
  router.add({.path = "/v1/node/backups",
              .operation_id = "listBackups",
              .tag = "node",
              .summary = "Lists the backups by name, and the one that is being made or has failed",
              .answers = {{200, "All of them.", R"({"type":"object","required":["backups"],"properties":{
                "backups":{"type":"array","items":{"$ref":"#/components/schemas/Backup"}}}})"}},
              .handler = answer_now([&backups](Request&) -> Result<Response> {
                auto json = backups.list();
                if (!json) return tl::unexpected(std::move(json.error()));
                return Response::json(200, *std::move(json));
              })});
  router.add({.method = Method::kPost,
              .path = "/v1/node/backups",
              .operation_id = "createBackup",
              .tag = "node",
              .summary = "Begins to make a backup of everything that is stored, and of the configuration",
              .description = "Appends go on meanwhile. It is complete when its state says so; see getBackup.",
              .body = BodyRule::kOptional,
              .request_schema = R"({"type":"object","additionalProperties":false,"properties":{"name":{"type":"string",
                "description":"1 to 64 of a-z A-Z 0-9 . _ -; without one, the time"}}})",
              .answers = {{202, "It is being made.", kBackup}},
              .problems = {{ErrorKind::kInvalidArgument, "INVALID_BACKUP_NAME", "the name cannot be that of a backup"},
                           {ErrorKind::kAlreadyExists, "BACKUP_EXISTS", "there is one of that name"},
                           {ErrorKind::kConflict, "BACKUP_RUNNING", "another one is being made"},
                           {ErrorKind::kExhausted, "TOO_MANY_BACKUPS", "storage.maxBackups are kept"}},
              .handler = answer_now([&backups](Request& request) -> Result<Response> {
                auto json = backups.create(request.body);
                if (!json) return tl::unexpected(std::move(json.error()));
                return Response::json(202, *std::move(json));
              })});
  router.add({.path = "/v1/node/backups/{backup}",
              .operation_id = "getBackup",
              .tag = "node",
              .summary = "Says how a backup fares",
              .params = {name_param(), Param::duration("wait", "While it is being made, waits so long for its end.")
                                           .range(0, max_wait.count())
                                           .otherwise("0ms")},
              .answers = {{200, "The backup.", kBackup}},
              .problems = {unknown_backup()},
              .handler = [&backups](Request request, Responder responder) { get(backups, request, responder); }});
  router.add({.method = Method::kDelete,
              .path = "/v1/node/backups/{backup}",
              .operation_id = "deleteBackup",
              .tag = "node",
              .summary = "Removes a backup, or forgets one that failed",
              .params = {name_param()},
              .answers = {{204, "It is gone."}},
              .problems = {unknown_backup(), {ErrorKind::kConflict, "BACKUP_RUNNING", "it is being made"}},
              .handler = answer_now([&backups](Request& request) -> Result<Response> {
                MILLRACE_TRY(backups.remove(std::string(request.params.string("backup"))));
                return Response::no_content();
              })});
}

}  // namespace millrace::http
