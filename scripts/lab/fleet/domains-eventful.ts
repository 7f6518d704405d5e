/** Domains to which something happens that their owners must hear of, once. */
import type { Builder } from "./builder.ts";
import { between, daily, type DomainPlan, END, office, type PlannedEvent } from "./plan.ts";
import { EXCESSIVE_DAY } from "./schedule.ts";
import { ownServers, through } from "./services.ts";

const NEW = ["new_source", "new_service"];
/** Without a record that names our address reports stop, too. */
const DNS_RULES = ["record_changed", "status_changed", "policy_weakened", "reports_stopped"];

const event = (what: string, day: number, more: Partial<PlannedEvent> & Pick<PlannedEvent, "rules">): PlannedEvent => ({
  ...{ what, day, within: 4, about: null, cause: null },
  ...more,
});

const keyBreaks = ({ addresses, plan, noise, key }: Builder): DomainPlan => {
  const domain = "atlas-outdoor.com";
  const own = { domain, network: "78.46.110", nameOf: () => `mx.${domain}`, selector: "atlas" };
  const isBroken = (day: number) => day >= 20 && day < 28;
  return plan(domain, "a key breaks, new services come", {
    record: () => "p=quarantine; {rua}",
    selectors: ["atlas", "mail", "hs1-77", "google"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(500) }),
      through(addresses, "google", { domain, volume: office(250), hosts: 8, selector: "google", returnPath: domain }),
      through(addresses, "brevo", {
        domain,
        volume: daily(420),
        hosts: 4,
        selector: "mail",
        isBroken,
        accept: ["authorized", "misconfigured"],
      }),
      through(addresses, "hubspot", { domain, volume: between(40, 999, office(130)), hosts: 4, selector: "hs1-77" }),
      through(addresses, "freshdesk", { domain, volume: between(50, 999, office(90)), hosts: 3, selector: null }),
      noise(domain, 0.3),
    ],
    dns: [
      { day: 20, name: `mail._domainkey.${domain}`, records: null },
      { day: 28, name: `mail._domainkey.${domain}`, records: { TXT: [key] } },
    ],
    events: [
      event("the key of Brevo breaks", 20, {
        rules: ["failure_spike"],
        cause: /(?=[\s\S]*brevo)(?=[\s\S]*selector)(?=[\s\S]*\bmail\b)/i,
        endDay: 28,
      }),
      event("HubSpot is new, aligned", 40, { rules: NEW, about: /hubspot/i, cause: /hubspot/i }),
      event("Freshdesk is new, unaligned", 50, {
        rules: [...NEW, "failure_spike"],
        about: /freshdesk|freshemail/i,
        cause: /freshdesk/i,
      }),
    ],
    checkpoints: [
      { day: 25, actions: ["fix_sources"], names: /brevo/i, expert: "fix the key of Brevo" },
      {
        day: END,
        actions: ["fix_sources"],
        names: /freshdesk/i,
        never: /np=reject/,
        expert: "set up DKIM at Freshdesk",
      },
    ],
  });
};

const earlyService = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "velvet-cinema.com";
  const own = { domain, network: "162.55.80", nameOf: () => `mx.${domain}`, selector: "vc" };
  return plan(domain, "services that come soon after enrolment and on a weekend, a key that breaks at a small sender", {
    selectors: ["vc", "z1", "s1", "k1"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(600) }),
      through(addresses, "zendesk", { domain, volume: between(12, 999, daily(30)), hosts: 3, selector: "z1" }),
      through(addresses, "sendgrid", { domain, volume: between(33, 999, daily(25)), hosts: 3, selector: "s1" }),
      through(addresses, "mailchimp", {
        ...{ domain, volume: daily(35), hosts: 6, selector: "k1", accept: ["authorized", "misconfigured"] },
        isBroken: (day) => day >= 48 && day < 60,
      }),
      noise(domain, 0.3),
    ],
    events: [
      event("Zendesk is new, aligned, on day 12", 12, { rules: NEW, about: /zendesk/i, cause: /zendesk/i }),
      event("SendGrid is new, aligned, on a Saturday", 33, { rules: NEW, about: /sendgrid/i, cause: /sendgrid/i }),
      event("the key of a small sender breaks", 48, {
        ...{ rules: ["failure_spike"], cause: /(?=[\s\S]*mailchimp)(?=[\s\S]*k1)/i, endDay: 60, isOptional: true },
      }),
    ],
    checkpoints: [
      {
        day: END,
        actions: ["rehearse_quarantine", "quarantine", "fix_sources", "wait"],
        names: null,
        expert: "rehearse quarantine",
      },
    ],
  });
};

const recordChanges = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "pinecrest-hotels.com";
  const own = { domain, network: "5.75.210", nameOf: () => `mx.${domain}`, selector: "ph" };
  const record = (day: number): string | null => {
    if (day >= 25 && day < 28) return "p=none; {rua}";
    if (day >= 40 && day < 42) return null;
    if (day >= 50 && day < 53) return "p=quarantine";
    return "p=quarantine; {rua}";
  };
  return plan(domain, "the record changes, reports stop", {
    record,
    selectors: ["ph", "selector1"],
    names: ["booking"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(300) }),
      through(addresses, "microsoft", {
        domain,
        volume: office(200),
        hosts: 6,
        selector: "selector1",
        returnPath: domain,
      }),
      ownServers(addresses, {
        ...{
          domain,
          network: "5.75.211",
          nameOf: () => `app.booking.${domain}`,
          selector: "ph",
          who: "own servers (booking)",
        },
        ...{ hosts: 1, volume: between(34, 999, daily(60)), headerFrom: `booking.${domain}` },
      }),
      noise(domain, 0.3),
    ],
    isSilent: (day) => day >= 62 && day < 69,
    events: [
      event("the policy is weakened", 25, {
        rules: ["policy_weakened"],
        within: 2,
        cause: /none/,
        beside: DNS_RULES,
        endDay: 28,
      }),
      event("new subdomain", 34, { rules: ["new_subdomain"], about: /booking/, cause: /booking/, beside: NEW }),
      event("the record is gone", 40, {
        rules: ["status_changed", "record_changed"],
        within: 2,
        cause: /record/i,
        beside: DNS_RULES,
        endDay: 42,
      }),
      event("our address is gone from rua", 50, {
        rules: ["status_changed", "record_changed"],
        within: 2,
        cause: /rua|address/i,
        beside: DNS_RULES,
        endDay: 53,
      }),
      event("reports stop", 62, { rules: ["reports_stopped"], within: 8, cause: /report/i, endDay: 69 }),
    ],
    checkpoints: [
      { day: 41, actions: ["fix_record", "publish_record"], names: /record/i, expert: "publish the record again" },
      {
        day: END,
        actions: ["reject", "rehearse_reject", "wait"],
        names: null,
        expert: "reject, when the days are over",
      },
    ],
  });
};

const includeRemoved = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "lumen-print.com";
  const shop = { domain, network: "185.30.32", nameOf: () => "web207.host-express.net", selector: null };
  const spfOn = (day: number) => ((day >= 30 && day < 42) || (day >= 58 && day < 63) ? "softfail" : "pass");
  const [full, cut] = [
    "v=spf1 include:_spf.google.com include:spf.host-express.net ~all",
    "v=spf1 include:_spf.google.com ~all",
  ];
  const apex = (spf: string) => ({ A: ["88.99.12.7"], MX: [{ preference: 10, exchange: `mx.${domain}` }], TXT: [spf] });
  return plan(domain, "an SPF include is removed", {
    spf: full,
    selectors: ["google"],
    streams: [
      through(addresses, "google", { domain, volume: office(300), hosts: 8, selector: "google", returnPath: domain }),
      ownServers(addresses, {
        ...shop,
        who: "shop",
        hosts: 1,
        volume: daily(200),
        spfOn,
        accept: ["authorized", "misconfigured"],
      }),
      noise(domain, 0.3),
    ],
    dns: [
      { day: 30, name: domain, records: apex(cut) },
      { day: 42, name: domain, records: apex(full) },
      { day: 58, name: domain, records: apex(cut) },
      { day: 63, name: domain, records: apex(full) },
    ],
    events: [
      event("an SPF include is removed", 30, { rules: ["failure_spike"], cause: /spf/i, endDay: 42 }),
      event("an SPF include is removed again", 58, { rules: ["failure_spike"], cause: /spf/i, endDay: 63 }),
    ],
    checkpoints: [
      { day: 38, actions: ["fix_sources"], names: /spf|host-express|web207/i, expert: "put the include back" },
    ],
  });
};

const migration = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "tangerine-pay.com";
  return plan(domain, "from Mailgun to Postmark", {
    record: () => "p=quarantine; {rua}",
    selectors: ["google", "mg", "pm"],
    names: ["mg", "pm-bounces"],
    streams: [
      through(addresses, "google", { domain, volume: office(260), hosts: 8, selector: "google", returnPath: domain }),
      through(addresses, "mailgun", {
        domain,
        volume: between(-99, 38, daily(900)),
        hosts: 5,
        selector: "mg",
        returnPath: `mg.${domain}`,
      }),
      through(addresses, "postmark", {
        domain,
        volume: between(35, 999, daily(900)),
        hosts: 5,
        selector: "pm",
        returnPath: `pm-bounces.${domain}`,
      }),
      noise(domain, 0.3),
    ],
    isUnreachable: (day) => day === 58 || day === 59,
    events: [event("Postmark is new, aligned", 35, { rules: NEW, about: /postmark|mtasv/i, cause: /postmark/i })],
    checkpoints: [{ day: END, actions: ["reject", "rehearse_reject"], names: null, expert: "reject, rehearsed" }],
  });
};

const imported = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "old-oak-press.com";
  const own = { domain, network: "176.9.44", nameOf: () => `mail.${domain}`, selector: "oak" };
  return plan(domain, "history from before enrolment", {
    enrolDay: 20,
    selectors: ["oak", "google"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(180) }),
      through(addresses, "google", { domain, volume: office(120), hosts: 7, selector: "google", returnPath: domain }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      {
        day: 23,
        actions: ["rehearse_quarantine", "quarantine"],
        names: null,
        expert: "the history counts: rehearse quarantine",
      },
    ],
  });
};

const forgedReports = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "meridian-labs.com";
  const own = { domain, network: "65.108.90", nameOf: () => `mx.${domain}`, selector: "ml" };
  return plan(domain, "somebody mails forged reports", {
    isReportForged: true,
    events: [
      event("an unknown reporter counts a million messages a day", EXCESSIVE_DAY, {
        rules: ["excessive_reporter"],
        cause: /attacker-host\.com/,
      }),
    ],
    selectors: ["ml"],
    streams: [ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(250) }), noise(domain, 0.3)],
    checkpoints: [
      { day: END, actions: ["rehearse_quarantine", "quarantine"], names: null, expert: "rehearse quarantine" },
    ],
  });
};

/** Plans of the domains with events. */
export const eventfulDomains = (builder: Builder): DomainPlan[] =>
  [keyBreaks, earlyService, recordChanges, includeRemoved, migration, imported, forgedReports].map((make) =>
    make(builder),
  );
