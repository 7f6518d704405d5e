import { startDnsServer } from "../../src/testing/dns-server.ts";
import { bareNxdomain, emptyAnswer, serveZone, type WrongAnswers } from "../../src/testing/dns-wrong.ts";
import type { Zone } from "../../src/testing/dns-zone.ts";
import { addressOf, SUFFIX, WRONG_DNS } from "./hosts.ts";

/** Zones below `lab.test` for which unbound asks the wrong server. */
export const WRONG_ZONES = ["emptydns", "bareno"] as const;

const EMPTY = `emptydns.${SUFFIX}`;
const BARE = `bareno.${SUFFIX}`;

/** What is true. Everything below `emptydns` is answered with NOERROR and nothing, everything below `bareno` with NXDOMAIN, both without an SOA. */
const TRUTH: Zone = {
  [EMPTY]: { MX: [[10, `mx.${EMPTY}`]] },
  [`mx.${EMPTY}`]: { A: [addressOf("main")] },
  [`implicit.${EMPTY}`]: { A: [addressOf("main")] },
  [`emptyhost.${SUFFIX}`]: { MX: [[10, `mx.${EMPTY}`]] },
  [`exists.${SUFFIX}`]: { MX: [[10, `main.mx.${SUFFIX}`]] },
  [`main.mx.${SUFFIX}`]: { A: [addressOf("main")] },
};

const isBelow = (question: string, zone: string): boolean =>
  question.endsWith(` ${zone}`) || question.endsWith(`.${zone}`);

/** By name, so that it holds for names that nobody has thought of. */
const WRONG: WrongAnswers = new Proxy<WrongAnswers>(
  {},
  {
    get: (_, question) => {
      if (typeof question !== "string") return undefined;
      if (isBelow(question, EMPTY)) return emptyAnswer;
      if (isBelow(question, BARE)) return bareNxdomain;
      return question === `MX exists.${SUFFIX}` ? [emptyAnswer] : undefined;
    },
  },
);

/** Starts it inside this process, with which it ends; throws when its address is taken. */
export const startWrongDns = async (): Promise<void> => {
  await startDnsServer(serveZone(TRUTH, WRONG), { hostname: WRONG_DNS.ip, port: WRONG_DNS.port });
};
