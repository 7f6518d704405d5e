import { freePort, type Stage } from "./stage.ts";
import { needTools } from "./tools.ts";

const ADDRESS = "127.0.0.1";
const SESSIONS_MAX = 1_000;

/** Starts an smtp-sink, which accepts every recipient, on a port of 127.0.0.1, and answers the port. */
export const startSink = async (stage: Stage, name: string): Promise<number> => {
  const port = freePort();
  await startSinkAt(stage, name, { address: ADDRESS, port });
  return port;
};

/** The same on another loopback address. */
export const startSinkAt = async (
  { supervisor }: Stage,
  name: string,
  { address, port }: { readonly address: string; readonly port: number },
): Promise<void> => {
  await needTools(supervisor, "smtp-sink");
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const where = [`${address}:${port}`, String(SESSIONS_MAX)];
  supervisor.start({ name, argv: ["smtp-sink", ...user, "-m", String(SESSIONS_MAX), ...where] });
  await supervisor.waitForPort(name, address, port);
};
