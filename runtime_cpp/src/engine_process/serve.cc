// sapwood_serve: the engine's protocol inside a process.
#include "engine/c_api.h"
#include "engine_process/server.h"

extern "C" sapwood_code sapwood_serve(int input, int output) {
  return sapwood::c_api::guarded([&] {
    std::string why;
    const sapwood::ServeEnd end = sapwood::Server(input, output).run(&why);
    return end == sapwood::ServeEnd::kShutdown
               ? sapwood::Status::okay()
               : sapwood::Status(sapwood::Code::kCorrupt, std::move(why));
  });
}
