import { ask, keyOf } from "./api.ts";
import { type Attack, type Finding, flood, tallyOf } from "./attack.ts";

const PATH = "/v1/bounces";
const FLOOD_MS = 15_000;
const AT_ONCE = 30;
const EVENTS = 1_000;
const MIB = 1024 * 1024;
/** A reply that looks like another line of the log, with control characters and a formula. */
const HOSTILE = "550 5.1.1 =cmd|x\u001b[2J to=<victim@example.com>, dsn=5.1.1, status=bounced ".repeat(2);

const eventsOf = (n: number): string =>
  JSON.stringify(
    Array.from({ length: EVENTS }, (_, at) => ({
      ...{ event: "bounce", type: "bounce", email: `u${at}@b${n % 100}.example`, timestamp: 1_767_225_600 },
      ...{ sg_event_id: `${n}-${at}`, status: "5.1.1" },
    })),
  );

const lineOf = (n: number, at: number): string =>
  `2026-01-01T00:00:00+00:00 mx postfix/smtp[1]: Q${n}x${at}: to=<u${at}@b.example>, relay=mx.b.example[192.0.2.1]:25, delay=1, delays=0/0/0/1, dsn=5.1.1, status=bounced (${HOSTILE})`;

const linesOf = (n: number): string => Array.from({ length: 1_000 }, (_, at) => lineOf(n, at)).join("\n");

const bounces: Attack = {
  name: "bounces",
  about: `${AT_ONCE} requests at once report up to ${EVENTS} bounces each, with hostile replies, deep JSON and 3 MiB`,
  isQuick: true,
  seconds: 40,
  prepare: async (context) => async (): Promise<readonly Finding[]> => {
    const statuses: number[] = [];
    await flood(context, { atOnce: AT_ONCE, forMs: FLOOD_MS }, async (n) => {
      const key = keyOf(context.keys.attacker.live, n);
      const bodies = [
        () => ({ body: eventsOf(n) }),
        () => ({ body: linesOf(n), type: "text/plain" }),
        () => ({ body: "[".repeat(MIB - 1) }),
        () => ({ body: "x\n".repeat(MIB), type: "text/plain" }),
        () => ({ body: "x".repeat(3 * MIB) }),
      ];
      const made = bodies[n % bodies.length]?.() ?? { body: "" };
      statuses.push((await ask(context, PATH, { key, ...made })).status);
    });
    return [{ what: "reports of bounces", value: statuses.length, unit: "", note: tallyOf(statuses) }];
  },
};

/** Attacks on what is reported about outgoing mail. */
export const bounceAttacks: readonly Attack[] = [bounces];
