import { systemClock } from "../../src/foundation/base/clock.ts";
import { createLog } from "../../src/foundation/base/log.ts";
import { systemRandom } from "../../src/foundation/base/secrets.ts";
import { EngineSlice } from "../../src/verify/open.ts";
import { createDirectConnector } from "../../src/foundation/net/connector.ts";
import { createZoneResolver } from "../../src/testing/dns-zone.ts";
import { startSmtpStub } from "../../src/testing/smtp-stub.ts";
import type { Mark } from "./marks.ts";
import { configOf, type Stage } from "./stage.ts";

const ZONE = {
  "turns.test": { MX: [[10, "mx.turns.test"]] },
  "mx.turns.test": { A: ["127.0.0.1"] },
} as const;

/** How often a check has to wait for the mail server, counted by the server: over a new connection and over a warm one. */
export const measureTurns = async (_stage: Stage): Promise<Mark[]> => {
  const stub = startSmtpStub({ rcpt: (address) => (address.startsWith("user") ? "250 Ok" : "550 5.1.1 Unknown user") });
  try {
    const connector = createDirectConnector({ clock: systemClock, mayConnect: () => true });
    const resolver = createZoneResolver(ZONE);
    const config = configOf({ POSTWARDEN_SMTP_PORT: String(stub.port) });
    const platform = { clock: systemClock, random: systemRandom, resolver, connector };
    const log = createLog("silent", systemClock, () => undefined);
    const { engines, smtp } = new EngineSlice(platform, config, { log, matchSuppression: () => null });
    const counts: number[] = [];
    for (const user of ["user1", "user2"]) {
      const { live } = engines;
      const attempted = await live.verify(live.begin(`${user}@turns.test`));
      const { attempts } = attempted.evidence;
      const reading = attempts[0]?.finding.reading;
      if (reading !== "accepted") throw new Error(`the server of turns was read as ${reading}`);
      counts.push(stub.sessions.reduce((sum, { turns }) => sum + turns, 0));
    }
    await smtp.pool.drain();
    const [first = Number.NaN, both = Number.NaN] = counts;
    const group = "turns";
    const note = `the real and the random recipient in one group; connections: ${stub.sessions.length}`;
    return [
      { group, what: "waits of a check, new connection", value: first, unit: "", limit: { most: 3 }, note },
      { group, what: "waits of a check, warm connection", value: both - first, unit: "", limit: { most: 1 } },
    ];
  } finally {
    stub.stop();
  }
};
