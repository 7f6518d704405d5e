import { connect, type Socket } from "node:net";
import { type Attack, type AttackContext, type Finding, flood, pause } from "./attack.ts";

/** Where the policy service listens during the attack. */
const POLICY = { host: "127.21.0.40", port: 10_040 } as const;
/** The mail server that must not notice. */
const OTHER_ADDRESS = "127.21.0.41";

const FLOOD_MS = 10_000;
const AT_ONCE = 60;
const QUESTIONS_AT_ONCE = 500;
const IDLE = 300;
const DEAF = 20;
const JUNK = ["EHLO x\r\n", "GET / HTTP/1.1\r\n\r\n", "a".repeat(100_000), "recipient=x\n".repeat(200), "\n"];
const ASK_EVERY_MS = 20;
/** Postfix waits for two seconds in the guide's settings. */
const ANSWER_MS_MAX = 500;
const ANSWER_TIMEOUT_MS = 2_000;

const questionAbout = (recipient: string): string =>
  `request=smtpd_access_policy\nprotocol_state=RCPT\nprotocol_name=ESMTP\nsender=\nrecipient=${recipient}\n\n`;

/** A connection that sends many questions at once, about addresses that nobody knows, and reads what it gets. */
const sendMany = async (n: number): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect({ ...POLICY });
  socket.on("error", () => resolve());
  socket.on("close", () => resolve());
  socket.resume();
  const junk = JUNK[n % (JUNK.length * 2)];
  const questions = Array.from({ length: QUESTIONS_AT_ONCE }, (_, at) => questionAbout(`u${n}-${at}@siege-${n}.com`));
  socket.end(junk ?? questions.join(""));
  await promise;
};

/** The time of one answer to a mail server that behaves; null without one. */
const askOnce = async (socket: Socket): Promise<number | null> => {
  const sinceMs = performance.now();
  const { promise, resolve } = Promise.withResolvers<number | null>();
  const timer = setTimeout(() => resolve(null), ANSWER_TIMEOUT_MS);
  const end = (): void => resolve(null);
  socket.once("data", () => resolve(performance.now() - sinceMs));
  socket.once("close", end);
  socket.write(questionAbout("ada@other-siege.com"));
  const ms = await promise;
  clearTimeout(timer);
  socket.off("close", end);
  return ms;
};

/** A mail server that asks again and again; it connects again when its connection has ended, as Postfix does. */
const askAgain = async (context: AttackContext): Promise<readonly Finding[]> => {
  const times: Array<number | null> = [];
  let socket: Socket | null = null;
  for (const endsAtMs = performance.now() + FLOOD_MS; performance.now() < endsAtMs && !context.signal.aborted;) {
    if (socket === null || socket.destroyed) {
      socket = connect({ ...POLICY, localAddress: OTHER_ADDRESS });
      socket.on("error", () => undefined);
    }
    times.push(await askOnce(socket));
    await pause(context, ASK_EVERY_MS);
  }
  socket?.destroy();
  const answered = times.filter((ms) => ms !== null).toSorted((a, b) => a - b);
  const slowest = answered.at(-1) ?? null;
  return [
    {
      what: "questions of another without an answer",
      value: times.length - answered.length,
      unit: "",
      limit: { most: 0 },
    },
    { what: "slowest answer to another", value: slowest, unit: "ms", limit: { most: ANSWER_MS_MAX } },
    {
      ...{ what: "median answer to another", value: answered[Math.floor(answered.length / 2)] ?? null, unit: "ms" },
      note: `${answered.length} answers`,
    },
  ];
};

const policyFlood: Attack = {
  name: "policy-flood",
  about: `${AT_ONCE} connections to the policy service with ${QUESTIONS_AT_ONCE} questions each or junk, ${IDLE} idle ones, ${DEAF} that read nothing, for ${FLOOD_MS / 1_000} s; another mail server asks meanwhile`,
  isQuick: true,
  seconds: 60,
  settings: {
    POSTWARDEN_POLICY_LISTEN: `${POLICY.host}:${POLICY.port}`,
    POSTWARDEN_POLICY_ACCOUNT: "attacker",
  },
  prepare: async (context) => async () => {
    await Promise.all(Array.from({ length: IDLE }, () => context.connections.open(POLICY)));
    for (let n = 0; n < DEAF; n++) {
      const deaf = await context.connections.open(POLICY, { reads: false });
      deaf.write(questionAbout("x@y.example").repeat(20_000));
    }
    const [findings] = await Promise.all([
      askAgain(context),
      flood(context, { atOnce: AT_ONCE, forMs: FLOOD_MS }, sendMany),
    ]);
    return findings;
  },
};

export const outgoingAttacks: readonly Attack[] = [policyFlood];
