import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../cli/cli.ts";
import type { Io, StdoutKind } from "../cli/io.ts";

/** The output and exit status of a command. */
export interface CommandResult {
  readonly status: number;
  readonly out: string;
  readonly err: string;
  /** Standard error without the log. */
  readonly problem: string;
  /** Standard output as JSON; throws when it is not JSON. */
  readonly json: Record<string, unknown>;
}

export interface CommandOptions {
  /** Settings without their prefix, in addition to the data directory. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of standard input; by default it is a terminal. */
  readonly stdin?: readonly string[];
  /** Replaces standard input, or what writes bytes to standard output. */
  readonly streams?: Partial<Pick<Io, "stdin" | "write">>;
  /** Called with every line of standard output and standard error. */
  readonly onLine?: (line: string) => void;
  /** Stops `serve`; by default immediately. */
  readonly untilSignal?: () => Promise<string>;
  /** Where standard output goes; by default a terminal. */
  readonly stdoutKind?: StdoutKind;
  /** Settings and other variables under their full names; replaces `settings`. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The settings file of the package; by default there is none. */
  readonly settingsFile?: string;
  /** Receives the task that a SIGHUP runs. */
  readonly onHangup?: (task: () => void) => void;
}

/** The command line on a data directory of its own, which is removed after the tests of the file. */
export const createCommandLine = () => {
  const dataDir = join(mkdtempSync(join(tmpdir(), "postwarden-")), "data");
  afterAll(() => rmSync(join(dataDir, ".."), { recursive: true, force: true }));

  const run = async (args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> => {
    const { settings = {}, stdin, onLine = () => undefined, untilSignal = async () => "SIGTERM" } = options;
    const { onHangup = () => undefined, stdoutKind = "terminal", environment } = options;
    const lines = { out: [] as string[], err: [] as string[] };
    const hear = (to: string[]) => (line: string) => {
      to.push(line);
      onLine(line);
    };
    const given = Object.entries({ DATA_DIR: dataDir, WORKERS: "0", ...settings }).map(([name, value]) => [
      `POSTWARDEN_${name}`,
      value,
    ]);
    const status = await runCli(args, {
      environment: environment ?? Object.fromEntries(given),
      settingsFile: options.settingsFile ?? null,
      out: hear(lines.out),
      err: hear(lines.err),
      status: null,
      stdinIsTerminal: stdin === undefined,
      stdoutKind,
      columns: stdoutKind === "terminal" ? 80 : Number.POSITIVE_INFINITY,
      async write(bytes) {
        lines.out.push(Buffer.from(bytes).toString());
      },
      async *stdin() {
        for (const line of stdin ?? []) yield Buffer.from(`${line}\n`);
      },
      async *stdinLines() {
        yield* stdin ?? [];
      },
      untilSignal,
      onHangup,
      ...options.streams,
    });
    const out = lines.out.join("\n");
    return {
      status,
      out,
      err: lines.err.join("\n"),
      problem: lines.err.filter((line) => !line.startsWith('{"at":')).join("\n"),
      get json() {
        return JSON.parse(out);
      },
    };
  };
  return { dataDir, run };
};
