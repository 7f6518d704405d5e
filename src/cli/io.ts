import { type Environment, processEnvironment } from "../config.ts";

/** What a command has of the world. Data goes to standard output, everything else to standard error. */
export interface Io {
  /** Where the settings stand. */
  readonly environment: Environment;
  out(line: string): void;
  err(line: string): void;
  /** Shows a text in the place of the one before it; null where standard error is no terminal. */
  readonly status: ((text: string) => void) | null;
  stdinLines(): AsyncIterable<string>;
  readonly stdinIsTerminal: boolean;
  /** Resolves with the name of the signal when the process is asked to end. */
  untilSignal(): Promise<string>;
  /** Runs `task` at every SIGHUP, which from then on does not end the process. */
  onHangup(task: () => void): void;
}

/** A command could not do what it was asked: one sentence for people, exit status 1. */
export class CommandFailed extends Error {
  constructor(
    message: string,
    readonly code = "failed",
  ) {
    super(message);
  }
}

/** The command line itself is wrong: exit status 2. */
export class UsageError extends Error {
  constructor(
    message: string,
    readonly code = "usage",
  ) {
    super(message);
  }
}

/** A line of standard input longer than this is cut: nothing Postwarden reads comes near it. */
const LINE_CHARACTERS_MAX = 1_048_576;

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = (lines.pop() ?? "").slice(0, LINE_CHARACTERS_MAX);
    for (const line of lines) yield line.replace(/\r$/, "");
  }
  rest += decoder.decode();
  if (rest !== "") yield rest.replace(/\r$/, "");
}

const untilSignal = (): Promise<string> =>
  new Promise((resolve) => {
    // Kept for good: a terminal's Ctrl-C reaches us twice where a parent forwards it, and the second must not kill.
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => resolve(signal));
  });

/** Back to the start of the line, and away with what stands there. */
const CLEAR_LINE = "\r\u001b[2K";

/** The process's own streams, environment and signals. */
export const systemIo: Io = {
  environment: processEnvironment(),
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  status: process.stderr.isTTY ? (text) => void process.stderr.write(CLEAR_LINE + text) : null,
  stdinLines: () => linesOf(Bun.stdin.stream()),
  stdinIsTerminal: process.stdin.isTTY === true,
  untilSignal,
  onHangup: (task) => void process.on("SIGHUP", task),
};

/** One JSON document, or the text for people. */
export const print = (io: Io, asJson: boolean | undefined, data: unknown, text: () => string): void =>
  io.out(asJson ? JSON.stringify(data) : text());

/** Rows under their headings, in columns as wide as they need. */
export const table = (headings: readonly string[], rows: ReadonlyArray<readonly string[]>): string => {
  const widths = headings.map((heading, at) => Math.max(heading.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  return [line(headings), ...rows.map(line)].join("\n");
};
