/** Domains whose next step needs an expert's view: little mail, no mail, what was fixed, a failed key rotation, an old `pct`. */
import type { Builder } from "./builder.ts";
import { between, daily, type DomainPlan, END, office, type Stream, weekdayOf } from "./plan.ts";
import { FEW } from "./reporters.ts";
import { ownServers, through } from "./services.ts";
import { botnet } from "./strangers.ts";

const FORWARD = ["rehearse_quarantine", "quarantine"] as const;
const ASKS = "set_sends_mail";

/** The same mail with other signatures on some days. */
const signing = (stream: Stream, dkim: (day: number, usual: SignedMail) => SignedMail): Stream => ({
  ...stream,
  mail: (day, host, chance) => {
    const mail = stream.mail(day, host, chance);
    return { ...mail, dkim: dkim(day, mail.dkim) };
  },
});
type SignedMail = ReturnType<Stream["mail"]>["dkim"];

/** Monday, Wednesday and Friday. */
const THREE_DAYS = [0, 2, 4];

const tiny = ({ addresses, plan }: Builder): DomainPlan => {
  const domain = "hebamme-anna.de";
  return plan(domain, "three messages a week, which all pass", {
    record: (day) => (day < 40 ? "p=none; {rua}" : "p=quarantine; t=y; {rua}"),
    selectors: ["fm1"],
    reporters: FEW,
    streams: [
      through(addresses, "fastmail", {
        ...{ domain, hosts: 2, selector: "fm1", returnPath: domain },
        volume: (day) => (THREE_DAYS.includes(weekdayOf(day)) ? 1 : 0),
      }),
    ],
    checkpoints: [
      { day: 18, stage: "monitoring", actions: ["wait"], names: /none failed/i, expert: "four weeks are not over" },
      { day: 37, stage: "monitoring", actions: FORWARD, names: null, expert: "four weeks without a failure: go on" },
      { day: END, stage: "rehearsal", actions: ["end_rehearsal"], names: null, expert: "end the rehearsal" },
    ],
  });
};

const parkedUndeclared = ({ addresses, plan }: Builder): DomainPlan => {
  const domain = "altmark-kaffee.com";
  return plan(domain, "parked, not declared, SPF -all, all mail forged, then declared", {
    record: (day) => (day < 64 ? "p=none; {rua}" : "p=reject; {rua}"),
    spf: "v=spf1 -all",
    reporters: FEW,
    isSilent: (day) => day >= 66,
    streams: [botnet(addresses, { domain, volume: daily(4), addresses: 120, aDay: 4 })],
    changes: [{ day: 62, body: { sends_mail: false } }],
    checkpoints: [
      { day: 5, stage: "monitoring", actions: [ASKS], names: /-all/, expert: "ask: SPF says that it sends none" },
      { day: 36, stage: "monitoring", actions: [ASKS], names: /send/i, expert: "ask whether it sends mail" },
      { day: 63, stage: "monitoring", actions: ["reject_all"], names: null, expert: "p=reject at once" },
      { day: END, stage: "reject", actions: [null], names: null, expert: "arrived; silence is right" },
    ],
  });
};

const fixedService = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "rohrbau-petersen.de";
  const mailjet = through(addresses, "mailjet", {
    ...{ domain, volume: daily(30), hosts: 4, selector: "mailjet", accept: ["authorized", "misconfigured"] },
  });
  return plan(domain, "an ESP that is set up on day 20, as advised", {
    selectors: ["google", "mailjet"],
    streams: [
      through(addresses, "google", { domain, volume: office(120), hosts: 7, selector: "google", returnPath: domain }),
      signing(mailjet, (day, usual) => (day < 20 ? usual.filter((signed) => signed.domain !== domain) : usual)),
      noise(domain, 0.3),
    ],
    checkpoints: [
      { day: 17, stage: "monitoring", actions: ["fix_sources"], names: /mailjet/i, expert: "set up DKIM at Mailjet" },
      {
        ...{ day: 34, stage: "monitoring", actions: ["wait"], names: /passed since/i, never: /set up DKIM/i },
        expert: "wait: it is fixed",
      },
      { day: 56, stage: "monitoring", actions: FORWARD, names: null, expert: "the failures are out of the 30 days" },
    ],
  });
};

const shortOutage = ({ addresses, plan, noise, key }: Builder): DomainPlan => {
  const domain = "notariat-sued.de";
  const isOut = (day: number) => day === 25 || day === 26;
  const own = ownServers(addresses, {
    ...{ domain, network: "94.130.19", nameOf: () => `mx.${domain}`, selector: "ns1", spf: "none" },
    ...{ who: "own servers", hosts: 1, volume: daily(150), accept: ["authorized", "misconfigured"] },
  });
  return plan(domain, "the key of the own server is missing for two days", {
    spf: "v=spf1 ip4:94.130.20.5 ~all",
    selectors: ["ns1", "google"],
    streams: [
      through(addresses, "google", { domain, volume: daily(220), hosts: 6, selector: "google", returnPath: domain }),
      signing(own, (day, usual) => (isOut(day) ? usual.map((one) => ({ ...one, result: "permerror" })) : usual)),
      noise(domain, 0.2),
    ],
    dns: [
      { day: 25, name: `ns1._domainkey.${domain}`, records: null },
      { day: 27, name: `ns1._domainkey.${domain}`, records: { TXT: [key] } },
    ],
    events: [
      {
        ...{ what: "the key is missing for two days", day: 25, within: 4, rules: ["failure_spike"], about: null },
        ...{ cause: /ns1[\s\S]*permerror/, endDay: 27 },
      },
    ],
    checkpoints: [
      {
        ...{ day: 34, stage: "monitoring", actions: ["wait"], names: /passed since/i, never: /sign the mail/i },
        expert: "wait: it is fixed",
      },
      { day: 60, stage: "monitoring", actions: FORWARD, names: null, expert: "the failures are out of the 30 days" },
    ],
  });
};

const failedRotation = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "spedition-hartmann.eu";
  const own = ownServers(addresses, {
    ...{ domain, network: "138.201.77", nameOf: () => `mx.${domain}`, selector: "k2026a", spf: "none" },
    ...{ who: "own servers", hosts: 1, volume: daily(260), selectorOn: (day) => (day < 40 ? "k2026a" : "k2026b") },
    accept: ["authorized", "misconfigured"],
  });
  return plan(domain, "a new selector without a key", {
    record: () => "p=quarantine; {rua}",
    spf: "v=spf1 ip4:138.201.78.5 ~all",
    selectors: ["k2026a"],
    streams: [
      signing(own, (day, usual) => (day < 40 ? usual : usual.map((one) => ({ ...one, result: "permerror" })))),
      noise(domain, 0.2),
    ],
    events: [
      {
        ...{ what: "the new selector has no key", day: 40, within: 4, rules: ["failure_spike"], about: null },
        ...{ cause: /selector k2026b[\s\S]*permerror/ },
      },
    ],
    checkpoints: [
      { day: 36, stage: "quarantine", actions: ["reject"], names: null, expert: "reject" },
      {
        ...{ day: 45, stage: "quarantine", actions: ["fix_sources", "fix_key"], names: /k2026b/ },
        expert: "publish the key of the new selector",
      },
    ],
  });
};

const pct = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "quarantaene-pct.de";
  return plan(domain, "pct=20, which stays when the policy is raised", {
    record: (day) => (day < 40 ? "p=quarantine; pct=20; t=n; {rua}" : "p=reject; np=reject; pct=20; {rua}"),
    selectors: ["google"],
    streams: [
      through(addresses, "google", {
        ...{ domain, volume: between(-99, 999, office(150)), hosts: 6, selector: "google", returnPath: domain },
      }),
      noise(domain, 0.2),
    ],
    checkpoints: [
      {
        ...{ day: 30, stage: "quarantine", actions: ["reject"], names: null },
        ...{ record: /^v=DMARC1; p=reject; rua=[^;]*$/, expert: "reject, without pct and t=n" },
      },
      {
        ...{ day: END, stage: "reject", actions: ["remove_pct"], names: /pct/ },
        ...{ record: /^v=DMARC1; p=reject; np=reject; rua=[^;]*$/, expert: "remove pct" },
      },
    ],
  });
};

/** Plans of the domains whose advice is hard. */
export const advisedDomains = (builder: Builder): DomainPlan[] =>
  [tiny, parkedUndeclared, fixedService, shortOutage, failedRotation, pct].map((make) => make(builder));
