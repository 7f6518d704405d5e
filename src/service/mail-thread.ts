import { parentPort, Worker } from "node:worker_threads";
import { systemClock } from "../foundation/base/clock.ts";
import { logTo, logUnhandled } from "../foundation/base/log.ts";
import { EngineServer } from "../verify/thread/engine-server.ts";
import type { StartThread } from "../verify/thread/engine-thread.ts";
import type { FromThread, ToThread } from "../verify/thread/messages.ts";
import { EngineSlice } from "../verify/open.ts";
import type { Config } from "./config.ts";
import { NetworkTally } from "../verify/thread/network-tally.ts";
import { NetworkMetrics } from "./metrics/network-metrics.ts";
import { freshResolverOf, systemPlatform } from "./platform.ts";

/** What the thread is started with. */
interface MailThreadData {
  readonly task: "mail servers";
  readonly config: Config;
}

const MICROSECONDS_PER_MS = 1_000;

/** Starts threads that verify addresses with these settings. `program` is the path of `main.ts`. */
export const createMailThreads =
  (config: Config, program = Bun.main): StartThread =>
  ({ message, ended }) => {
    const workerData: MailThreadData = { task: "mail servers", config };
    const worker = new Worker(program, { workerData });
    worker.on("message", message);
    worker.on("error", ended);
    worker.on("exit", (status) => ended(new Error(`exit status ${status}`)));
    return {
      post: (order: ToThread) => worker.postMessage(order),
      terminate: () => void worker.terminate(),
    };
  };

/** What the thread does until it is ended: `main.ts` starts it. */
export const runMailThread = ({ config }: MailThreadData): void => {
  const port = parentPort;
  if (port === null) throw new Error("there is no other thread");
  const post = (message: FromThread) => port.postMessage(message);
  const log = logTo((level, message, fields) => post({ kind: "log", level, message, fields }));
  logUnhandled(log, systemClock);
  const tally = new NetworkTally();
  const network = new NetworkMetrics(tally, systemClock);
  const platform = systemPlatform(config);
  const engine = new EngineSlice({ ...platform, resolver: network.watchResolver(platform.resolver) }, config, {
    log,
    fresh: network.watchResolver(freshResolverOf(config)),
    matchSuppression: null,
    watchSessions: (open) => network.watchSessions(open),
  });
  const processorMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / MICROSECONDS_PER_MS;
  };
  const server = new EngineServer({
    attempts: engine.attempts.live,
    smtp: engine.smtp,
    clock: systemClock,
    post,
    tally,
    processorMs,
  });
  port.on("message", (message: ToThread) => server.receive(message));
};
