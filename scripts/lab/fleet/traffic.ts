import type { Chance } from "./chance.ts";
import type { DomainPlan, Mail, Stream } from "./plan.ts";
import { REPORTERS, type Reporter } from "./reporters.ts";

/** A row of a report, before it is written in a style. */
export interface Row extends Mail {
  readonly ip: string;
  readonly count: number;
  readonly isDkimAligned: boolean;
  readonly isSpfAligned: boolean;
  readonly disposition: "none" | "quarantine" | "reject";
}

/** What a receiver saw of a domain on a day. */
export interface Sight {
  readonly reporter: Reporter;
  readonly rows: readonly Row[];
}

/** The tags of a DMARC record. */
export type Tags = Readonly<Partial<Record<string, string>>>;

/** The tags of a record's text. */
export const tagsOf = (record: string): Tags =>
  Object.fromEntries(
    record.split(";").flatMap((part) => {
      const [name = "", value] = part.split("=").map((text) => text.trim());
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** The only public suffix of two labels that the fleet uses. */
const LONG_SUFFIX = ".co.uk";
/** The organisational domain of a name of the fleet. */
const organisationOf = (name: string): string =>
  name
    .split(".")
    .slice(name.endsWith(LONG_SUFFIX) ? -3 : -2)
    .join(".");

const isAligned = (name: string, from: string, mode: string | undefined): boolean =>
  mode === "s" ? name === from : organisationOf(name) === organisationOf(from);

const policyFor = (headerFrom: string, domain: string, tags: Tags): string => {
  const policy = headerFrom === domain ? tags.p : (tags.sp ?? tags.p);
  if (tags.t !== "y") return policy ?? "none";
  return policy === "reject" ? "quarantine" : "none";
};

const rowOf = (mail: Mail, ip: string, count: number, { name, tags }: { name: string; tags: Tags }): Row => {
  const isDkimAligned = mail.dkim.some(
    ({ domain, result }) => result === "pass" && isAligned(domain, mail.headerFrom, tags.adkim),
  );
  const isSpfAligned = mail.spf.result === "pass" && isAligned(mail.spf.domain, mail.headerFrom, tags.aspf);
  const policy = policyFor(mail.headerFrom, name, tags);
  const disposition =
    isDkimAligned || isSpfAligned ? "none" : policy === "quarantine" || policy === "reject" ? policy : "none";
  return { ...mail, ip, count, isDkimAligned, isSpfAligned, disposition };
};

/** The share of messages for which a receiver reports that it did not find the key in time. */
const KEY_UNANSWERED = 0.004;

const asSeen = (mail: Mail, isAnswered: boolean): Mail =>
  isAnswered ? mail : { ...mail, dkim: mail.dkim.map((signed) => ({ ...signed, result: "temperror" })) };

/** Who sent from which address of a domain; an address has one sender. */
export type Truth = Map<string, Stream>;

/** All that receivers saw of a domain on a day; `truth` learns the addresses. */
export const sightsOf = (
  plan: DomainPlan,
  day: number,
  { chance, truth, scale }: { readonly chance: Chance; readonly truth: Truth; readonly scale: number },
): Sight[] => {
  const tags = tagsOf(plan.record(day) ?? "p=none");
  const reporters = plan.reporters.flatMap((name) => REPORTERS[name] ?? []);
  const weights = reporters.map(({ weight }) => weight);
  const rows = reporters.map((): Row[] => []);
  for (const [at, stream] of plan.streams.entries()) {
    const own = chance.named(`${plan.name} ${day} ${at}`);
    const exact = stream.volume(day, own) * scale;
    const count = scale === 1 ? exact : Math.floor(exact) + (own.hits(exact % 1) ? 1 : 0);
    if (count === 0) continue;
    const hosts = stream.hosts(day, own);
    const parts = own.split(
      count,
      hosts.map(() => 1),
    );
    for (const [index, host] of hosts.entries()) {
      const part = parts[index] ?? 0;
      if (part === 0) continue;
      const known = truth.get(host.ip);
      if (known !== undefined && known !== stream) throw new Error(`${host.ip} has two senders in ${plan.name}`);
      truth.set(host.ip, stream);
      const mail = stream.mail(day, host, own);
      for (const [to, messages] of own.split(part, weights).entries())
        if (messages > 0)
          rows[to]?.push(rowOf(asSeen(mail, !own.hits(KEY_UNANSWERED)), host.ip, messages, { name: plan.name, tags }));
    }
  }
  return reporters.flatMap((reporter, at) => {
    const own = rows[at] ?? [];
    return own.length === 0 ? [] : [{ reporter, rows: own }];
  });
};
