/** Domains whose own mail passes, and to which nothing happens. Nobody needs an alert about them. */
import type { Builder } from "./builder.ts";
import { daily, type DomainPlan, END, monthly, office, rarely, weekly } from "./plan.ts";
import { FEW } from "./reporters.ts";
import { ownServers, through } from "./services.ts";
import { botnet, forwarder, mailingList } from "./strangers.ts";

const healthy = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "brightforge.com";
  const own = { domain, network: "88.198.21", nameOf: (n: number) => `mx${n}.${domain}`, selector: "mail" };
  return plan(domain, "healthy: three senders that all sign with the domain", {
    selectors: ["mail", "mail2026", "google", "s1"],
    streams: [
      // The key is renewed, and a server comes, which is nobody new.
      ownServers(addresses, {
        ...{ ...own, who: "own servers", hosts: 2, volume: office(800), added: { day: 50, network: "49.12.88" } },
        selectorOn: (day) => (day >= 44 ? "mail2026" : "mail"),
      }),
      ownServers(addresses, { ...own, who: "own servers (IPv6)", network: "2a01:4f8", hosts: 1, volume: office(90) }),
      through(addresses, "google", { domain, volume: office(450), hosts: 14, selector: "google", returnPath: domain }),
      through(addresses, "sendgrid", {
        ...{ domain, volume: daily(300), hosts: 3, selector: "s1", returnPath: `em442.${domain}` },
        // Addresses of its own at SendGrid have names of the customer's choice.
        dedicated: (n) => `o${n}.em442.${domain}`,
      }),
      noise(domain, 0.4),
    ],
    checkpoints: [
      { day: 35, actions: ["rehearse_quarantine", "quarantine"], names: null, expert: "rehearse quarantine" },
      { day: END, actions: ["rehearse_quarantine", "quarantine"], names: null, expert: "rehearse quarantine" },
    ],
  });
};

const lists = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "openharbor.org";
  const own = { domain, network: "95.217.40", nameOf: (n: number) => `mx${n}.${domain}`, selector: "oh1" };
  const passed = { domain, selector: "oh1" };
  return plan(domain, "mailing lists and forwarders, p=quarantine", {
    record: () => "p=quarantine; {rua}",
    selectors: ["oh1"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 2, volume: office(500, 0.5) }),
      mailingList(addresses, {
        ...{
          ...passed,
          who: "lists.free-software-circle.org",
          network: "209.51.188",
          envelope: "lists.free-software-circle.org",
        },
        ...{ nameOf: () => "lists.free-software-circle.org", volume: office(55, 0.6), seals: true, signs: true },
      }),
      mailingList(addresses, {
        ...{ ...passed, who: "mailman.harbor-users.net", network: "93.93.131", envelope: "mailman.harbor-users.net" },
        ...{ nameOf: () => "mailman.harbor-users.net", volume: office(25, 0.6), seals: false, signs: false },
      }),
      // This list adds a disclaimer and keeps our envelope: only our own broken signature shows where its mail comes from.
      mailingList(addresses, {
        ...{ ...passed, who: "lawfirm-partner.com", network: "80.241.60", envelope: null, signs: false, seals: false },
        ...{ nameOf: () => "mx.lawfirm-partner.com", volume: office(4), accept: ["forwarder", "unknown"] },
      }),
      forwarder(addresses, {
        ...{ ...passed, who: "alumni-nordstadt.edu", network: "129.16.30", envelope: "alumni-nordstadt.edu" },
        ...{ hosts: 2, nameOf: (n) => `fwd${n}.alumni-nordstadt.edu`, volume: daily(9) },
      }),
      // Readers with a mailbox at Gmail who have their mail sent on.
      forwarder(addresses, {
        ...{ ...passed, who: "Gmail (forwarding)", network: "74.125.82", hosts: 3, envelope: "gmail.com" },
        ...{ nameOf: (n) => `mail-sor-f${n + 40}.google.com`, volume: daily(12), accept: ["forwarder", "authorized"] },
      }),
      noise(domain, 0.4),
    ],
    checkpoints: [
      {
        ...{ day: END, actions: [null, "wait", "protect_missing_names"], names: /list|passed on|forward/i },
        expert: "stay at quarantine: lists would lose mail",
      },
    ],
  });
};

const rehearsal = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "verdant-farm.com";
  const own = { domain, network: "168.119.70", nameOf: () => `mx.${domain}`, selector: "vf" };
  return plan(domain, "rehearsal with t=y", {
    record: () => "p=quarantine; t=y; {rua}",
    selectors: ["vf", "google"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(150) }),
      through(addresses, "google", { domain, volume: office(120), hosts: 8, selector: "google", returnPath: domain }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      { day: 10, actions: ["wait", null], names: /day/i, expert: "wait: fourteen days are not over" },
      { day: END, actions: ["end_rehearsal"], names: null, expert: "end the rehearsal" },
    ],
  });
};

const oneReporter = ({ addresses, plan }: Builder): DomainPlan => {
  const domain = "saltmarsh-gallery.com";
  return plan(domain, "one reporter only", {
    reporters: ["google"],
    selectors: ["google"],
    streams: [
      through(addresses, "google", { domain, volume: office(60), hosts: 6, selector: "google", returnPath: domain }),
    ],
    checkpoints: [
      {
        day: END,
        actions: ["wait", null],
        names: /reporter/i,
        never: /np=reject/,
        expert: "wait for a second reporter",
      },
    ],
  });
};

const family = ({ addresses, plan }: Builder): DomainPlan => {
  const domain = "the-hallbergs.net";
  const passed = { domain, selector: "fm1" };
  return plan(domain, "family, eight messages a day", {
    selectors: ["fm1"],
    reporters: [...FEW, "fastmail"],
    streams: [
      through(addresses, "fastmail", { domain, volume: office(8, 1.4), hosts: 5, selector: "fm1", returnPath: domain }),
      forwarder(addresses, {
        ...{ ...passed, who: "school-lund.se", network: "130.235.9", envelope: "school-lund.se" },
        ...{ nameOf: () => "mx.school-lund.se", volume: rarely(0.12, 2) },
      }),
      mailingList(addresses, {
        ...{ ...passed, who: "lists.choir-malmo.se", network: "194.71.11", envelope: "lists.choir-malmo.se" },
        ...{ nameOf: () => "lists.choir-malmo.se", volume: rarely(0.1, 2), seals: true, signs: true },
      }),
      botnet(addresses, { domain, volume: rarely(0.1, 1), addresses: 40, aDay: 1 }),
    ],
    checkpoints: [
      { day: END, actions: ["rehearse_quarantine", "quarantine", "wait"], names: null, expert: "rehearse quarantine" },
    ],
  });
};

const tenfold = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "pixelpony-games.com";
  const own = { domain, network: "135.181.66", nameOf: () => `mail.${domain}`, selector: "pp" };
  return plan(domain, "ten times the mail for five days", {
    selectors: ["pp", "ses1", "k1", "mandrill"],
    events: [
      {
        ...{ what: "ten times the mail", day: 40, within: 3, rules: ["volume_spike"], endDay: 45 },
        ...{ about: null, cause: /SES/, isOptional: true },
      },
    ],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(100) }),
      through(addresses, "ses", {
        ...{ domain, hosts: 9, selector: "ses1" },
        volume: (day, chance) => daily(day >= 40 && day < 45 ? 5000 : 450)(day, chance),
      }),
      through(addresses, "mailchimp", { domain, volume: weekly(1, 300), hosts: 5, selector: "k1" }),
      through(addresses, "mandrill", { domain, volume: daily(60), hosts: 4, selector: "mandrill" }),
      // A game server at a large cloud: no selector of its own, named by the cloud.
      ownServers(addresses, {
        ...{ domain, who: "own servers (cloud)", network: "3.72.44", hosts: 1, selector: null, volume: daily(40) },
        nameOf: () => "ec2-3-72-44-9.eu-central-1.compute.amazonaws.com",
      }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      { day: END, actions: ["rehearse_quarantine", "quarantine"], names: null, expert: "rehearse quarantine" },
    ],
  });
};

const gateway = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "grandunion-insurance.com";
  const selectorOn = (day: number) => (day >= 36 ? "selector2" : "selector1");
  const own = { domain, network: "193.41.60", nameOf: (n: number) => `batch${n}.${domain}`, selector: "batch" };
  return plan(domain, "a gateway in front of Microsoft 365, 20,000 messages a day", {
    record: () => "p=quarantine; {rua}",
    selectors: ["selector1", "selector2", "batch"],
    streams: [
      through(addresses, "proofpoint", {
        domain,
        volume: office(16_000, 0.1),
        hosts: 6,
        selector: "selector1",
        returnPath: domain,
        selectorOn,
      }),
      through(addresses, "microsoft", {
        domain,
        volume: office(900),
        hosts: 6,
        selector: "selector1",
        returnPath: domain,
        selectorOn,
      }),
      ownServers(addresses, { ...own, who: "own servers", hosts: 3, volume: monthly(3, 4000) }),
      noise(domain, 1),
    ],
    checkpoints: [{ day: END, actions: ["reject", "rehearse_reject"], names: null, expert: "reject, rehearsed" }],
  });
};

/** Plans of the domains that are in order. */
export const quietDomains = (builder: Builder): DomainPlan[] =>
  [healthy, lists, rehearsal, oneReporter, family, tenfold, gateway].map((make) => make(builder));
