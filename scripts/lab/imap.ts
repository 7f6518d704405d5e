import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { sampleReportMail } from "../../src/testing/dmarc-reports.ts";
import { command, createKey } from "../harness/binary.ts";
import type { Subject } from "./ask.ts";
import { DOVECOT, type Dovecot, PASSWORD, type Program, TOKEN, createProgram, startDovecot } from "./imap-dovecot.ts";
import { type Claim, claim } from "./claims.ts";
import { BOUNCE_SIGNER, BOUNCE_USER, runBounces } from "./imap-bounces.ts";
import type { Supervisor } from "./processes.ts";
import { z } from "zod";

const THEME = "imap";
const HTTP = { ip: "127.10.9.80", port: 8_089 } as const;
const BASE = `http://${HTTP.ip}:${HTTP.port}`;
const DOMAIN = "imap-lab.com";
const DEADLINE_MS = 20_000;
const PROMPT_MS_MAX = 20_000;
const STOP_MS_MAX = 20_000;
const BEFORE = 30;
const DURING_KILLS = 600;
const KILLS = 3;

const Enrolment = z.object({ domain: z.object({ id: z.string() }) });
/** While the service loads, the body is that of an error. */
const Ready = z.object({ findings: z.array(z.string()).default([]) });

const cellOf = (what: string, expected: string, got: string): Claim => claim(THEME, what, expected, got);

const lunch = new TextEncoder().encode("From: a@b.example\r\nSubject: lunch\r\n\r\nHow about lunch?\r\n");
const reports = (from: number, count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, at) => sampleReportMail({ domain: DOMAIN, reportId: `imap-${from + at}` }));

/** Resolves with whether something became so, within the deadline. */
const until = async (isSo: () => Promise<boolean>): Promise<boolean> => {
  for (const endsMs = performance.now() + DEADLINE_MS; performance.now() < endsMs; await Bun.sleep(50)) {
    if (await isSo()) return true;
  }
  return false;
};

interface Place {
  readonly supervisor: Supervisor;
  readonly lab: Subject;
  readonly dovecot: Dovecot;
}

const urlOf = (user: string, folder = "INBOX"): string =>
  `imaps://${user}:${PASSWORD}@${DOVECOT.ip}:${DOVECOT.imaps}/${folder}`;

const environmentOf = ({ lab, dovecot }: Place, name: string, settings: Readonly<Record<string, string>>) => ({
  ...lab.environment,
  POSTWARDEN_DATA_DIR: join(lab.directory, `imap-${name}-data`),
  POSTWARDEN_HOST: HTTP.ip,
  POSTWARDEN_PORT: String(HTTP.port),
  POSTWARDEN_REPORT_HOST: "reports.lab.test",
  POSTWARDEN_IMAP_CA_FILE: dovecot.ca,
  ...settings,
});

/** A data directory with an account, and the service on it; answers a live key. */
const prepare = async (place: Place, name: string, settings: Readonly<Record<string, string>>) => {
  const { lab } = place;
  const env = environmentOf(place, name, settings);
  await mkdir(env.POSTWARDEN_DATA_DIR);
  const at = { binary: lab.binary, cwd: "/" };
  command(["accounts", "create", "lab"], env, at);
  const key = createKey("lab", env, at);
  const service = createProgram({
    ...{ env, directory: lab.directory, name: `serve-imap-${name}` },
    argv: [lab.binary, "serve"],
    ports: [HTTP],
  });
  return { env, key, service };
};

const ask = async <T>(schema: z.ZodType<T>, key: string, path: string, body?: unknown): Promise<T> => {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(BASE + path, { ...init, headers, signal: AbortSignal.timeout(DEADLINE_MS) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} was answered with ${response.status} ${text.slice(0, 300)}`);
  return schema.parse(JSON.parse(text));
};

const seenIn = async (dovecot: Dovecot, user: string): Promise<number> =>
  (await dovecot.flags(user)).filter((flags) => flags.includes("S")).length;

/** Messages counted for the domain: each report has one. */
const countedOf = async (key: string, id: string): Promise<string> => {
  const summary = z.object({ messages: z.number() }).or(z.object({ summary: z.object({ messages: z.number() }) }));
  const read = await ask(summary, key, `/v1/dmarc/domains/${id}/summary?from=2025-12-01&to=2026-02-01`);
  return String("messages" in read ? read.messages : read.summary.messages);
};

/** What is there before the start, what comes while the service idles, and what comes while it is killed time and again. */
const runSeen = async (place: Place): Promise<Claim[]> => {
  const { dovecot, supervisor, lab } = place;
  const user = "seen";
  await dovecot.deliver(user, [...reports(0, BEFORE), lunch]);
  const { env, key, service } = await prepare(place, user, { POSTWARDEN_IMAP_URL: urlOf(user) });
  const look = await supervisor.finish([lab.binary, "dmarc", "imap-check", "--json"], { env });
  const checked = z.object({ messages: z.number() }).safeParse(JSON.parse(look.stdout || "null"));
  const untouched = (await dovecot.flags(user)).filter((flags) => flags === "").length;
  try {
    await service.start();
    const { domain } = await ask(Enrolment, key, "/v1/dmarc/domains", { domain: DOMAIN });
    await until(async () => (await seenIn(dovecot, user)) >= BEFORE);
    // Reports that arrived before the domain was enrolled are quarantined.
    await ask(z.unknown(), key, "/v1/dmarc/ingestions/retry", {});
    const seen = await seenIn(dovecot, user);
    const idleMs = performance.now();
    await dovecot.deliver(user, reports(BEFORE, 1));
    await until(async () => (await seenIn(dovecot, user)) > BEFORE);
    const tookMs = performance.now() - idleMs;
    const killed = await runKills(place, service, user);
    const all = BEFORE + 1 + DURING_KILLS;
    await until(async () => (await countedOf(key, domain.id)) === String(all));
    const counted = await countedOf(key, domain.id);
    const restarted = await restartDovecot(dovecot, user, all);
    const stopMs = await service.stop();
    return [
      cellOf(
        "imap-check counts and changes nothing",
        `0 ${BEFORE + 1} ${BEFORE + 1}`,
        `${look.code} ${checked.data?.messages} ${untouched}`,
      ),
      cellOf("reports that were there are flagged, other mail is not", `${BEFORE}`, `${seen}`),
      cellOf(
        "IDLE: a new one is flagged within seconds",
        "yes",
        tookMs < PROMPT_MS_MAX ? "yes" : `${Math.round(tookMs)} ms`,
      ),
      cellOf(`flagged after ${KILLS} kills`, `${all}`, `${killed}`),
      cellOf("messages counted after them", `${all}`, counted),
      cellOf("a restart of Dovecot is survived", "yes", restarted ? "yes" : "no"),
      cellOf(
        "SIGTERM while it idles ends the service",
        "at once",
        stopMs < STOP_MS_MAX ? "at once" : `${Math.round(stopMs)} ms`,
      ),
    ];
  } finally {
    await service.stop("SIGKILL");
  }
};

const runKills = async ({ dovecot }: Place, service: Program, user: string): Promise<number> => {
  const all = BEFORE + 1 + DURING_KILLS;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const each = DURING_KILLS / KILLS;
    await dovecot.deliver(user, reports(BEFORE + 1 + kill * each, each));
    const before = await seenIn(dovecot, user);
    await until(async () => (await seenIn(dovecot, user)) > before);
    await service.stop("SIGKILL");
    await service.start();
  }
  await until(async () => (await seenIn(dovecot, user)) >= all);
  return seenIn(dovecot, user);
};

const restartDovecot = async (dovecot: Dovecot, user: string, before: number): Promise<boolean> => {
  await dovecot.program.stop();
  await dovecot.deliver(user, reports(before, 1));
  await dovecot.program.start();
  return until(async () => (await seenIn(dovecot, user)) > before);
};

/** Moving, deleting, STARTTLS and OAuth 2.0: one report each, and what is in the mailbox then. */
const runWays = async (place: Place): Promise<Claim[]> => {
  const { dovecot } = place;
  const cells: Claim[] = [];
  const starttls = `imap://starttls:${PASSWORD}@${DOVECOT.name}:${DOVECOT.imap}/INBOX?starttls`;
  const token = `imaps://token@${DOVECOT.ip}:${DOVECOT.imaps}/INBOX`;
  const ways = [
    ["move", "0 0 1", { POSTWARDEN_IMAP_URL: urlOf("move"), POSTWARDEN_IMAP_AFTER: "move:Done" }],
    ["delete", "0 0 0", { POSTWARDEN_IMAP_URL: urlOf("delete"), POSTWARDEN_IMAP_AFTER: "delete" }],
    ["starttls", "1 1 0", { POSTWARDEN_IMAP_URL: starttls }],
    ["token", "1 1 0", { POSTWARDEN_IMAP_URL: token, POSTWARDEN_IMAP_TOKEN_COMMAND: `echo ${TOKEN}` }],
  ] as const;
  for (const [user, expected, settings] of ways) {
    const { key, service } = await prepare(place, user, settings);
    const counts = async () =>
      `${(await dovecot.flags(user)).length} ${await seenIn(dovecot, user)} ${(await dovecot.flags(user, "Done")).length}`;
    try {
      await service.start();
      await ask(Enrolment, key, "/v1/dmarc/domains", { domain: DOMAIN });
      await dovecot.deliver(user, reports(0, 1));
      await until(async () => (await counts()) === expected);
      cells.push(cellOf(`${user}: in the inbox, flagged, moved`, expected, await counts()));
    } finally {
      await service.stop();
    }
  }
  return cells;
};

/** Bounces in a mailbox beside those of the reports. */
const runBounceMailbox = async (place: Place): Promise<readonly Claim[]> => {
  const { supervisor, lab, dovecot } = place;
  await dovecot.deliver(BOUNCE_USER, []);
  const { key, service } = await prepare(place, BOUNCE_USER, {
    POSTWARDEN_IMAP_CA_FILE: "",
    POSTWARDEN_BOUNCE_IMAP_URL: urlOf(BOUNCE_USER),
    POSTWARDEN_BOUNCE_IMAP_CA_FILE: dovecot.ca,
    POSTWARDEN_BOUNCE_IMAP_SIGNED_BY: BOUNCE_SIGNER,
  });
  try {
    await service.start();
    return await runBounces({
      ...{ supervisor, until, directory: lab.directory, mailboxes: dovecot.mailboxes },
      deliver: (mails) => dovecot.deliver(BOUNCE_USER, mails),
      flags: () => dovecot.flags(BOUNCE_USER),
      list: () => ask(z.unknown(), key, "/v1/bounces"),
    });
  } finally {
    await service.stop();
  }
};

/** What is wrong with the settings or the server is said by the command, and by the service. */
const runProblems = async (place: Place): Promise<Claim[]> => {
  const { supervisor, lab, dovecot } = place;
  const wrong = urlOf("seen").replace(PASSWORD, "wrong");
  const { env, service } = await prepare(place, "wrong", { POSTWARDEN_IMAP_URL: wrong });
  await dovecot.deliver("seen", []);
  const check = async (what: string, settings: Readonly<Record<string, string>>, sentence: RegExp) => {
    const { code, stderr } = await supervisor.finish([lab.binary, "dmarc", "imap-check"], {
      env: { ...env, ...settings },
    });
    const isRight = code === 1 && sentence.test(stderr) && !stderr.includes(PASSWORD);
    return cellOf(`imap-check says ${what}`, "yes", isRight ? "yes" : `${code} ${stderr.trim()}`);
  };
  const cells = [
    await check("that the password is wrong", {}, /did not accept the login/),
    await check(
      "which folders there are",
      { POSTWARDEN_IMAP_URL: urlOf("seen", "Reprots") },
      /"Reprots".*folders are: .*"INBOX"/s,
    ),
    await check("that the certificate is not trusted", { POSTWARDEN_IMAP_CA_FILE: "" }, /POSTWARDEN_IMAP_CA_FILE/),
  ];
  try {
    await service.start();
    const findings = async () => Ready.parse(await (await fetch(`${BASE}/readyz`)).json()).findings.join();
    const isFound = await until(async () => (await findings()).includes("did not accept the login"));
    return [...cells, cellOf("/readyz says that the password is wrong", "yes", isFound ? "yes" : await findings())];
  } finally {
    await service.stop();
  }
};

/** Reports in mailboxes of a real Dovecot, and what the executable makes of them. `cache` holds the unpacked packages. */
export const runImap = async (supervisor: Supervisor, lab: Subject, cache: string): Promise<readonly Claim[]> => {
  const dovecot = await startDovecot(supervisor, { parent: lab.directory, cache, tokenUser: "token" });
  const place = { supervisor, lab, dovecot };
  try {
    return [
      ...(await runSeen(place)),
      ...(await runWays(place)),
      ...(await runProblems(place)),
      ...(await runBounceMailbox(place)),
    ];
  } finally {
    await dovecot.program.stop();
    dovecot.stop();
  }
};
