import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";

/** How long the command may take, in milliseconds. */
export const TOKEN_COMMAND_MS_MAX = 30_000;
/** Tokens of Microsoft have some 3 KB. */
const TOKEN_BYTES_MAX = 16 * 1024;
const TOKEN_FORM = /^[\x21-\x7e]+$/;

/**
 * Runs a command (by `sh -c`) whose standard output is an OAuth 2.0 access token (RFC 6750). The error is a sentence; neither
 * the command nor its output is in it, because both may contain secrets. Its standard error goes to ours.
 */
export const runTokenCommand = async (command: string, clock: Clock): Promise<Result<string, string>> => {
  const child = spawn(command);
  if (child === null) return err("The token command could not be started: there is no shell.");
  let problem: string | null = null;
  const end = (why: string) => {
    problem ??= why;
    killGroup(child.pid);
    void reader.cancel().catch(() => undefined);
  };
  const reader = child.stdout.getReader();
  const cancel = clock.after(TOKEN_COMMAND_MS_MAX, () =>
    end(`The token command took longer than ${TOKEN_COMMAND_MS_MAX / 1000} seconds.`),
  );
  try {
    const output = await readUpTo(reader, TOKEN_BYTES_MAX);
    if (output === null) end(`The token command printed more than ${TOKEN_BYTES_MAX} bytes.`);
    const status = await child.exited;
    if (problem !== null) return err(problem);
    if (status !== 0) return err(`The token command ended with status ${status}.`);
    const token = new TextDecoder().decode(output ?? new Uint8Array()).trim();
    return TOKEN_FORM.test(token) ? ok(token) : err("The token command printed no token: one line of printable ASCII.");
  } finally {
    cancel();
  }
};

const spawn = (command: string) => {
  try {
    return Bun.spawn(["sh", "-c", command], { stdin: "ignore", stdout: "pipe", stderr: "inherit", detached: true });
  } catch {
    return null;
  }
};

/** Ends a command with all that it started. */
const killGroup = (pid: number) => {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process has ended meanwhile.
  }
};

/** Everything there is to read; null when it is more than `bytesMax`. */
const readUpTo = async (
  reader: { read(): Promise<{ done: boolean; value?: unknown }> },
  bytesMax: number,
): Promise<Uint8Array | null> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done || !(value instanceof Uint8Array)) return Buffer.concat(chunks);
    size += value.byteLength;
    if (size > bytesMax) return null;
    chunks.push(value);
  }
};
