import { randomInt } from "node:crypto";
import { AccountsSlice } from "../../src/accounts/open.ts";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { openData } from "../bench/stage.ts";
import { type Credentials, HttpClient, type SeenPage, readPage, signIn } from "../dashboard/http-client.ts";
import { startMailSink } from "../lab/fleet/world.ts";
import { type Attack, type AttackContext, type Finding, type SeedContext, flood, pause, tallyOf } from "./attack.ts";
import { Secret, TOTP } from "otpauth";

/** A member of the account that attacks, the owner of another account, and a member there whose password is known. */
const ATTACKER: Credentials = { email: "mallory@attacker.test", password: "mallory has her own words" };
const OWNER: Credentials = { email: "ada@other.test", password: "ada has other words here" };
const VICTIM: Credentials = { email: "bob@other.test", password: "bob has told his words" };

/** Every client has the address that a request names. */
const BEHIND_PROXY = { POSTWARDEN_TRUSTED_PROXIES: "127.0.0.1/32" };
const OTHER_NETWORK = "203.0.113.7";

const CONNECTIONS = 60;
const FLOOD_MS = 10_000;
/** How long each connection waits after an answer: what is measured is the hashing of passwords, not the rendering of pages. */
const PATIENCE_MS = 1_000;
const SIGN_INS = 10;
const SIGN_IN_EVERY_MS = 500;
/** On a quiet machine a sign-in takes less than a tenth of it. */
const SIGN_IN_MS_MAX = 5_000;

/** The users, of whom the victim is asked for a code. */
const seedUsers = async ({ dataDir }: SeedContext): Promise<void> => {
  const db = openData(dataDir);
  const { store, users, profiles } = new AccountsSlice({ db, clock: systemClock });
  const create = async (account: string, { email, password }: Credentials, role: "owner" | "member") => {
    const accountId = store.findAccountByName(account)?.id ?? "";
    const user = await users.create({ accountId, email, password, role, isOperator: false }, null);
    if (!user.ok) throw new Error(`no user ${email}: ${user.error.message}`);
    return user.value.id;
  };
  await create("attacker", ATTACKER, "member");
  await create("other", OWNER, "owner");
  const userId = await create("other", VICTIM, "member");
  const secret = Secret.fromBase32(profiles.enrol(userId)?.secret ?? "");
  const proof = { present: VICTIM.password, code: new TOTP({ secret }).generate() };
  const confirmed = await profiles.confirmCodes({ userId, sessionId: "" }, proof);
  if (!confirmed.ok) throw new Error(`no codes: ${confirmed.error.message}`);
  db.close();
};

/** The form of a page with this action; undefined without one. */
const formIn = async (html: string, page: string, action: string): Promise<Record<string, string> | undefined> => {
  const form = (await readPage(html, page)).forms.find((one) => one.action === action);
  return form === undefined ? undefined : Object.fromEntries(form.fields);
};

type Send = (path: string, values: Readonly<Record<string, string>>, from: string) => Promise<SeenPage>;

/** A visitor who has loaded the sign-in page once sends its forms repeatedly, each time from another address. */
const openBrowser = async ({ service }: AttackContext) => {
  const client = new HttpClient(service.url);
  const fields = await formIn((await client.get(SIGN_IN)).html, SIGN_IN, SIGN_IN);
  const send: Send = (path, values, from) =>
    client.post(path, new URLSearchParams({ ...fields, ...values }), { "x-forwarded-for": from });
  return { client, send };
};

const SIGN_IN = "/sign-in";
const CHANGE = "/settings/profile/password";

/** The owner of the other account signs in ten times while the attack goes on. */
const signInAgain = async (context: AttackContext): Promise<readonly Finding[]> => {
  const statuses: number[] = [];
  let slowestMs = 0;
  for (let n = 0; n < SIGN_INS && !context.signal.aborted; n++) {
    await pause(context, SIGN_IN_EVERY_MS);
    const fromMs = performance.now();
    const { send } = await openBrowser(context);
    statuses.push((await send(SIGN_IN, { ...OWNER }, OTHER_NETWORK)).status);
    slowestMs = Math.max(slowestMs, performance.now() - fromMs);
  }
  const failed = SIGN_INS - statuses.filter((status) => status === 303).length;
  return [
    { what: "sign-ins of another that failed", value: failed, unit: "", limit: { most: 0 }, note: tallyOf(statuses) },
    { what: "slowest sign-in of another", value: slowestMs, unit: "ms", limit: { most: SIGN_IN_MS_MAX } },
  ];
};

/** Does `task` again and again while the owner of the other account signs in. */
const floodSignIns = async (
  context: AttackContext,
  task: (n: number) => Promise<SeenPage>,
): Promise<readonly Finding[]> => {
  const statuses: number[] = [];
  const [findings] = await Promise.all([
    signInAgain(context),
    flood(context, { atOnce: CONNECTIONS, forMs: FLOOD_MS }, async (n) => {
      statuses.push((await task(n)).status);
      await pause(context, PATIENCE_MS);
    }),
  ]);
  return [{ what: "answers to the attacker", value: statuses.length, unit: "", note: tallyOf(statuses) }, ...findings];
};

const passwordChanges: Attack = {
  name: "password-changes",
  about: `a member changes the password over ${CONNECTIONS} connections without knowing the present one`,
  isQuick: false,
  seconds: 40,
  settings: BEHIND_PROXY,
  seed: seedUsers,
  prepare: async (context) => {
    const member = await signIn(context.service.url, ATTACKER);
    const { html } = await member.get("/settings/profile");
    const fields = await formIn(html, "/settings/profile", CHANGE);
    return () =>
      floodSignIns(context, (n) => {
        const password = `the next words, number ${n}`;
        const values = { ...fields, present: `guess ${n}`, password, repeat: password };
        return member.post(CHANGE, new URLSearchParams(values));
      });
  },
};

const oneNetwork: Attack = {
  name: "sign-ins-of-one-network",
  about: `${CONNECTIONS} connections sign in, each time as somebody else and from another /64 of one IPv6 /48`,
  isQuick: false,
  seconds: 40,
  settings: BEHIND_PROXY,
  seed: seedUsers,
  prepare: async (context) => {
    const { send } = await openBrowser(context);
    return () =>
      floodSignIns(context, (n) => {
        const guess = { email: `nobody${n}@attacker.test`, password: `guess number ${n}` };
        return send(SIGN_IN, guess, `2001:db8:1:${(n % 65_536).toString(16)}::1`);
      });
  },
};

const ENTER_CODE = "/sign-in/code";
const GUESSERS = 10;
const GUESS_MS = 20_000;
const GUESS_EVERY_MS = 200;
/** Compared over all sign-ins and networks, before a wait of at least a minute. */
const CODES_MAX = 10;
const WAIT_S_MIN = 50;
const MAIL_MS_MAX = 5_000;

/** What was answered to the codes that somebody guesses who has the right password. */
class Guesses {
  readonly answers: string[] = [];
  longestWaitS = 0;
  #networks = 0;

  constructor(private readonly context: AttackContext) {}

  /** One sign-in with the right password, and codes until it is over. */
  async signIn(): Promise<void> {
    const { client, send } = await openBrowser(this.context);
    const { html } = await send(SIGN_IN, { ...VICTIM }, this.#nextNetwork());
    const form = await formIn(html, SIGN_IN, ENTER_CODE);
    let isOver = form === undefined;
    while (!isOver && !this.context.signal.aborted) {
      const code = String(randomInt(1_000_000)).padStart(6, "0");
      const { status, headers, location } = await send(ENTER_CODE, { ...form, code }, this.#nextNetwork());
      // The last code before a wait leads back to the password, as does one of a sign-in that is over.
      const isLast = location !== null && (await client.get(location)).html.includes("Too many wrong codes.");
      this.answers.push(status === 401 || isLast ? "compared" : `status ${status}`);
      this.longestWaitS = Math.max(this.longestWaitS, Number(headers.get("retry-after") ?? 0));
      isOver = status !== 401;
    }
    await pause(this.context, GUESS_EVERY_MS);
  }

  get compared(): number {
    return this.answers.filter((answer) => answer === "compared").length;
  }

  /** A /64 of a /48 of its own. */
  #nextNetwork(): string {
    return `2001:db8:${(this.#networks++ % 65_536).toString(16)}:1::1`;
  }
}

/** What the owner of the account gets to know. */
const ownerFindings = async (context: AttackContext): Promise<readonly Finding[]> => {
  for (let waitedMs = 0; waitedMs < MAIL_MS_MAX && context.countOfServer() === 0; waitedMs += GUESS_EVERY_MS)
    await pause(context, GUESS_EVERY_MS);
  const { client, send } = await openBrowser(context);
  await send(SIGN_IN, { ...OWNER }, OTHER_NETWORK);
  const isShown = (await client.get("/")).html.includes(`Wrong codes were entered for ${VICTIM.email}`);
  return [
    { what: "mails to the owner", value: context.countOfServer(), unit: "", limit: { least: 1 } },
    { what: "warnings on the home page of the owner", value: isShown ? 1 : 0, unit: "", limit: { least: 1 } },
  ];
};

const guessedCodes: Attack = {
  name: "guessed-codes",
  about: `${GUESSERS} connections sign in with the right password and guess its codes, each from another network`,
  isQuick: false,
  seconds: 45,
  settings: BEHIND_PROXY,
  open: () => {
    const sink = startMailSink();
    const relay = `smtp://127.0.0.1:${sink.port}`;
    return {
      settings: { POSTWARDEN_NOTIFY_SMTP_URL: relay, POSTWARDEN_NOTIFY_FROM: "alerts@siege.test" },
      count: () => sink.mails.filter(({ to }) => to === OWNER.email).length,
      close: () => sink.stop(),
    };
  },
  seed: seedUsers,
  prepare: async (context) => async () => {
    const guesses = new Guesses(context);
    await flood(context, { atOnce: GUESSERS, forMs: GUESS_MS }, () => guesses.signIn());
    const { answers, compared, longestWaitS } = guesses;
    const note = tallyOf(answers);
    return [
      { what: "codes compared", value: compared, unit: "", limit: { most: CODES_MAX }, note },
      { what: "longest wait", value: longestWaitS, unit: "s", limit: { least: WAIT_S_MIN } },
      ...(await ownerFindings(context)),
    ];
  },
};

/** Attacks on the sign-in of the dashboard. */
export const signInAttacks: readonly Attack[] = [passwordChanges, oneNetwork, guessedCodes];
