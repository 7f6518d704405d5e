import * as packet from "dns-packet";
import { type DnsScript, encodeResponse, type ResponseParts, type SeenQuery, soaFor } from "./dns-server.ts";
import type { Zone, ZoneRecords } from "./dns-zone.ts";

/** Makes a response out of the right one. */
export type Wrong = (query: SeenQuery, right: ResponseParts) => Uint8Array;

/** Faults by query, as `MX x.example` or `*`: one for every query, or a sequence that is followed by the correct response. */
export type WrongAnswers = Readonly<Record<string, Wrong | readonly Wrong[]>>;

const TTL_S = 300;
const RCODES: Readonly<Record<string, number>> = { servfail: 2, nxdomain: 3, refused: 5 };
const ALIASES_MAX = 8;

const answersOf = (name: string, type: string, records: ZoneRecords): packet.Answer[] => {
  const owned = { name, ttl: TTL_S };
  if (type === "MX" && typeof records.MX === "object") {
    return records.MX.map(([preference, exchange]) => ({ ...owned, type: "MX", data: { preference, exchange } }));
  }
  if (type === "A" && typeof records.A === "object") return records.A.map((data) => ({ ...owned, type: "A", data }));
  if (type === "AAAA" && typeof records.AAAA === "object")
    return records.AAAA.map((data) => ({ ...owned, type: "AAAA", data }));
  if (type === "TXT" && typeof records.TXT === "object")
    return records.TXT.map((data) => ({ ...owned, type: "TXT", data }));
  return [];
};

/** The response of a correct recursive server with this zone: every negative one carries an SOA (RFC 2308 §3). */
const rightResponse = (zone: Zone, { name, type }: SeenQuery): ResponseParts => {
  const aliases: packet.Answer[] = [];
  let owner = name.toLowerCase();
  for (;;) {
    const entry = Object.hasOwn(zone, owner) ? zone[owner] : "nxdomain";
    const authorities = [soaFor(owner)];
    if (entry === undefined || typeof entry === "string")
      return { answers: aliases, authorities, rcode: RCODES[entry ?? "nxdomain"] ?? 0 };
    if (entry.CNAME === undefined || type === "CNAME" || aliases.length === ALIASES_MAX) {
      const found = answersOf(owner, type, entry);
      return { answers: [...aliases, ...found], authorities: found.length > 0 ? [] : authorities };
    }
    aliases.push({ name: owner, type: "CNAME", ttl: TTL_S, data: entry.CNAME });
    owner = entry.CNAME;
  }
};

/** A name server for the zone with faults for some queries. Faults for `*` follow those of the query itself. */
export const serveZone = (zone: Zone, wrong: WrongAnswers = {}): DnsScript => {
  const asked = new Map<string, number>();
  return (query) => {
    const right = rightResponse(zone, query);
    const key = `${query.type} ${query.name.toLowerCase()}`;
    const times = asked.get(key) ?? 0;
    asked.set(key, times + 1);
    const chosen = wrong[key] ?? wrong["*"];
    const now = typeof chosen === "function" ? chosen : chosen?.[times];
    return now === undefined ? encodeResponse(query, right) : now(query, right);
  };
};

const isNegative = ({ answers = [] }: ResponseParts): boolean => !answers.some(({ type }) => type !== "CNAME");
const plain =
  (parts: ResponseParts): Wrong =>
  (query) =>
    encodeResponse(query, parts);
const nameServers = (name: string): packet.Answer[] => [{ name, type: "NS", ttl: TTL_S, data: "ns.example" }];
const withTtl = (answers: packet.Answer[] = [], ttl: number): packet.Answer[] =>
  answers.map((answer) => ({ ...answer, ttl }) as packet.Answer);

/** NOERROR without records: what a server without data sends. */
export const emptyAnswer: Wrong = plain({});
/** NXDOMAIN without the SOA of the zone. */
export const bareNxdomain: Wrong = plain({ rcode: 3 });

/** Negative responses lose their SOA, as out of the cache of many forwarders; the right records otherwise. */
export const withoutSoa: Wrong = (query, right) => encodeResponse(query, { ...right, authorities: [] });
/** Like `withoutSoa`, but a query with the DO bit is forwarded to a server that sends the SOA. */
export const withoutSoaUnlessDnssec: Wrong = (query, right) =>
  encodeResponse(query, query.dnssecOk ? right : { ...right, authorities: [] });

/** Responses that say nothing about the name, whatever they look like. After each of them the outcome must be open. */
export const WORTHLESS: Readonly<Record<string, Wrong>> = {
  "NOERROR, empty, no SOA": emptyAnswer,
  "NOERROR, empty, no SOA, authoritative": plain({ flags: packet.AUTHORITATIVE_ANSWER }),
  "NOERROR, empty, the SOA of another zone": plain({ authorities: [soaFor("other.zone")] }),
  SERVFAIL: plain({ rcode: 2 }),
  REFUSED: plain({ rcode: 5 }),
  NOTIMP: plain({ rcode: 4 }),
  "a referral to the root": plain({ authorities: nameServers(".") }),
  "a lame referral that claims authority": (query) =>
    encodeResponse(query, { authorities: nameServers("example"), flags: packet.AUTHORITATIVE_ANSWER }),
  "records of another name": plain({
    answers: [{ name: "other.example", type: "A", ttl: TTL_S, data: "203.0.114.9" }],
  }),
  "records of another name, with an SOA": (query) =>
    encodeResponse(query, {
      answers: [{ name: "other.example", type: "A", ttl: TTL_S, data: "203.0.114.9" }],
      authorities: [soaFor(query.name)],
    }),
  "a record of another type": (query) =>
    encodeResponse(query, {
      answers: [{ name: query.name, type: "TXT", ttl: TTL_S, data: "hello" }],
      authorities: [soaFor(query.name)],
    }),
  "a record of a type that we do not know": (query) =>
    encodeResponse(query, {
      answers: [{ name: query.name, type: "HINFO", ttl: TTL_S, data: { cpu: "x", os: "y" } }],
      authorities: [soaFor(query.name)],
    }),
  "a record of another class": (query) =>
    encodeResponse(query, {
      answers: [{ name: query.name, type: "A", class: "CH", ttl: TTL_S, data: "203.0.114.9" }],
      authorities: [soaFor(query.name)],
    }),
  "an alias in a circle": (query) =>
    encodeResponse(query, { answers: [{ name: query.name, type: "CNAME", ttl: TTL_S, data: query.name }] }),
  "truncated, over TCP as well": (query, right) =>
    encodeResponse(query, { ...right, flags: packet.TRUNCATED_RESPONSE }),
  "bytes behind the message": (query) => Buffer.concat([encodeResponse(query), Buffer.from("x")]),
  "NXDOMAIN with records": (query, right) =>
    isNegative(right)
      ? encodeResponse(query, { ...right, rcode: 2 })
      : encodeResponse(query, { ...right, rcode: 3, authorities: [soaFor(query.name)] }),
};

/** Responses that are unusual and right: they must change nothing. */
export const UNUSUAL: Readonly<Record<string, Wrong>> = {
  "times to live of zero": (query, right) =>
    encodeResponse(query, {
      ...right,
      answers: withTtl(right.answers, 0),
      authorities: withTtl(right.authorities, 0),
    }),
  "out of a cache, a second left": (query, right) =>
    encodeResponse(query, {
      ...right,
      answers: withTtl(right.answers, 1),
      authorities: withTtl(right.authorities, 1),
    }),
  "records in another order": (query, right) =>
    encodeResponse(query, { ...right, answers: (right.answers ?? []).toReversed() }),
  "an alias without what lies behind it": (query, { answers = [], ...right }) =>
    encodeResponse(query, answers[0]?.type === "CNAME" ? { answers: [answers[0]] } : { answers, ...right }),
  "a record of another name beside": (query, right) =>
    isNegative(right)
      ? encodeResponse(query, right)
      : encodeResponse(query, {
          ...right,
          answers: [{ name: "other.example", type: "A", ttl: TTL_S, data: "203.0.114.9" }, ...(right.answers ?? [])],
        }),
  "an SOA only for questions with the DO bit": withoutSoaUnlessDnssec,
  "the whole response over TCP only": (query, right) =>
    encodeResponse(query, query.transport === "udp" ? { flags: packet.TRUNCATED_RESPONSE } : right),
};
