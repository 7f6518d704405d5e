import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { HTTP } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import type { Row } from "./table.ts";

/** Rows that are under way at once; most of them only wait. */
const ROWS_AT_ONCE = 16;
/** How long one row may take by either way before it counts as wrong. */
const ROW_DEADLINE_MS = 60_000;
/** What the HTTP call is held open for; the longest row has to end within it. */
const HTTP_TIMEOUT_S = 50;
const HTTP_TRIES_MAX = 40;
const ACCOUNT = "lab";
/** The service has a sender of its own, so that greylisting meets it afresh after the command line has passed. */
const SERVICE_SENDER = "service@lab.example";
const CREDITS = 10_000;

const Outcome = z.object({
  verdict: z.string(),
  sub_status: z.string(),
  quality_score: z.number(),
  confidence: z.number(),
});
const KeyMade = z.object({ key: z.string() });
const Answer = z.object({ status: z.string(), result: Outcome.optional() });

/** What one way of asking said about one row; `problem` when it said nothing usable. */
export interface Asked {
  readonly verdict: string;
  readonly subStatus: string;
  readonly quality: number;
  readonly confidence: number;
  readonly elapsedMs: number;
  readonly problem?: string;
}

/** A row with both answers. It is right when command line and HTTP both gave the expected verdict and sub_status. */
export interface Judged {
  readonly row: Row;
  readonly cli: Asked;
  readonly http: Asked;
  readonly right: boolean;
}

/** The binary, the environment that points it at the lab, and a directory for its data. */
interface Subject {
  readonly binary: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly directory: string;
}

/** All that asking needs: `key` is the live key of the running service. */
interface Bench {
  readonly supervisor: Supervisor;
  readonly subject: Subject;
  readonly key: string;
}

const asked = (outcome: z.infer<typeof Outcome>, sinceMs: number): Asked => ({
  verdict: outcome.verdict,
  subStatus: outcome.sub_status,
  quality: outcome.quality_score,
  confidence: outcome.confidence,
  elapsedMs: Math.round(performance.now() - sinceMs),
});

const nothing = (problem: string, sinceMs: number): Asked => ({
  verdict: "-",
  subStatus: "-",
  quality: 0,
  confidence: 0,
  elapsedMs: Math.round(performance.now() - sinceMs),
  problem,
});

const askByCommandLine = async ({ supervisor, subject }: Bench, row: Row, index: number): Promise<Asked> => {
  const sinceMs = performance.now();
  const dataDirectory = join(subject.directory, `cli-${index}`);
  await mkdir(dataDirectory);
  const ended = await supervisor.finish([subject.binary, "verify", "--json", "--", row.address], {
    cwd: dataDirectory,
    env: { ...subject.environment, POSTWARDEN_DATA_DIR: dataDirectory },
    timeoutMs: ROW_DEADLINE_MS,
  });
  try {
    return asked(Outcome.parse(JSON.parse(ended.stdout)), sinceMs);
  } catch {
    return nothing(`exit ${ended.code ?? "by signal"}: ${(ended.stdout + ended.stderr).slice(0, 300)}`, sinceMs);
  }
};

const askByHttp = async (key: string, row: Row): Promise<Asked> => {
  const sinceMs = performance.now();
  let last = "";
  for (let tries = 0; tries < HTTP_TRIES_MAX; tries += 1) {
    const response = await fetch(`http://${HTTP.ip}:${HTTP.port}/v1/email-verifications?timeout=${HTTP_TIMEOUT_S}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ email: row.address }),
      signal: AbortSignal.timeout(ROW_DEADLINE_MS),
    });
    const body = await response.text();
    last = `${response.status} ${body.slice(0, 300)}`;
    if (response.status !== 429) {
      const answer = Answer.safeParse(response.status === 200 ? JSON.parse(body) : {});
      if (answer.success && answer.data.result !== undefined) return asked(answer.data.result, sinceMs);
      break;
    }
    await Bun.sleep(1000 * Number(response.headers.get("retry-after") ?? "1"));
  }
  return nothing(last, sinceMs);
};

/** Starts `serve` on the lab's HTTP address and returns a live key with credits enough for every row. */
export const startService = async (supervisor: Supervisor, subject: Subject): Promise<string> => {
  const env = {
    ...subject.environment,
    POSTWARDEN_DATA_DIR: join(subject.directory, "served"),
    POSTWARDEN_MAIL_FROM: SERVICE_SENDER,
  };
  await mkdir(env.POSTWARDEN_DATA_DIR);
  const command = (...words: string[]): Promise<string> => supervisor.run([subject.binary, ...words], { env });
  await command("accounts", "create", ACCOUNT, "--json");
  await command("accounts", "set-plan", ACCOUNT, "scale", "--json");
  await command("credits", "grant", ACCOUNT, String(CREDITS), "--json");
  const made = KeyMade.parse(
    JSON.parse(await command("keys", "create", "--account", ACCOUNT, "--mode", "live", "--json")),
  );
  supervisor.start({
    name: "serve",
    argv: [subject.binary, "serve"],
    env: { ...env, POSTWARDEN_HOST: HTTP.ip, POSTWARDEN_PORT: String(HTTP.port) },
  });
  await supervisor.waitForPort("serve", HTTP.ip, HTTP.port);
  return made.key;
};

const judge = async (bench: Bench, row: Row, index: number): Promise<Judged> => {
  const sinceMs = performance.now();
  const [cli, http] = await Promise.all([
    askByCommandLine(bench, row, index),
    askByHttp(bench.key, row).catch((error: unknown) => nothing(String(error), sinceMs)),
  ]);
  const expected = ({ verdict, subStatus }: Asked): boolean => verdict === row.verdict && subStatus === row.subStatus;
  return { row, cli, http, right: expected(cli) && expected(http) };
};

/** Asks the binary about every row, by command line and by HTTP, and answers in the order of `rows`. */
export const runTable = async (
  bench: Bench,
  rows: readonly Row[],
  tell: (judged: Judged) => void,
): Promise<readonly Judged[]> => {
  const queue = [...rows.entries()];
  const judged: { readonly index: number; readonly result: Judged }[] = [];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, row] = next;
      const result = await judge(bench, row, index);
      judged.push({ index, result });
      tell(result);
    }
  };
  await Promise.all(Array.from({ length: ROWS_AT_ONCE }, work));
  return judged.toSorted((a, b) => a.index - b.index).map(({ result }) => result);
};
