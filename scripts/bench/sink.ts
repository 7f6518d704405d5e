import { freePort, type Stage } from "./stage.ts";
import { needTools } from "./tools.ts";

const ADDRESS = "127.0.0.1";
const SESSIONS_MAX = 1_000;

/** Starts an smtp-sink, which accepts every recipient, on a port of 127.0.0.1, and answers the port. */
export const startSink = async ({ supervisor }: Stage, name: string): Promise<number> => {
  await needTools(supervisor, "smtp-sink");
  const port = freePort();
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const where = [`${ADDRESS}:${port}`, String(SESSIONS_MAX)];
  supervisor.start({ name, argv: ["smtp-sink", ...user, "-m", String(SESSIONS_MAX), ...where] });
  await supervisor.waitForPort(name, ADDRESS, port);
  return port;
};
