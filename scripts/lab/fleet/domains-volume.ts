/** Domains of which far more mail passes than usual, with and without a reason. */
import type { Addresses } from "./addresses.ts";
import type { Builder } from "./builder.ts";
import { between, daily, type DomainPlan, END, isWeekend, monthly, office, type Stream, weekly } from "./plan.ts";
import { ownServers, through } from "./services.ts";

const both =
  (first: Stream["volume"], second: Stream["volume"]): Stream["volume"] =>
  (day, chance) =>
    first(day, chance) + second(day, chance);

const REPLAY_NETWORKS = ["45.90.16", "91.200.12", "103.27.60", "141.98.100", "176.123.4", "193.37.200"];

/** Somebody sends one message that the domain signed from many rented hosts. */
const replayers = (
  addresses: Addresses,
  given: {
    readonly domain: string;
    readonly selector: string;
    readonly hosts: number;
    readonly volume: Stream["volume"];
  },
): Stream => {
  const { domain, selector, volume } = given;
  let n = 0;
  const hosts = addresses.take(REPLAY_NETWORKS, given.hosts, () => `vm${++n}.cloud-rent-${n % 9}.net`);
  return {
    ...{ who: "replayers", volume, hosts: () => hosts },
    // Only what is around the mail shows that it is not forwarded: no report tells the two apart.
    ...{ accept: ["threat", "unknown", "forwarder", "authorized"], isPooled: true },
    mail: () => ({
      ...{ headerFrom: domain, envelope: `b.cloud-rent-1.net`, spf: { domain: "b.cloud-rent-1.net", result: "none" } },
      dkim: [{ domain, selector, result: "pass" }],
      passedOn: null,
    }),
  };
};

const replay = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "birchwood-dental.com";
  const own = { domain, network: "88.198.60", nameOf: () => `mail.${domain}`, selector: "bw" };
  return plan(domain, "a signed message is replayed from 80 hosts", {
    selectors: ["bw", "google"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(150) }),
      through(addresses, "google", { domain, volume: office(120), hosts: 7, selector: "google", returnPath: domain }),
      replayers(addresses, { domain, selector: "bw", hosts: 80, volume: between(50, 52, daily(6_800)) }),
      noise(domain, 0.3),
    ],
    events: [
      {
        ...{ what: "DKIM replay", day: 50, within: 3, rules: ["volume_spike"], about: null, endDay: 52 },
        cause: /(?=[\s\S]*new address)(?=[\s\S]*"selector":"bw")/,
        beside: ["new_source"],
      },
    ],
  });
};

const compromised = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "autohaus-lindner.com";
  const own = { domain, network: "49.12.90", nameOf: () => `mail.${domain}`, selector: "al" };
  return plan(domain, "the account of a user is compromised for three days", {
    selectors: ["al", "selector1"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: daily(40) }),
      through(addresses, "microsoft", {
        ...{ domain, hosts: 8, selector: "selector1", returnPath: domain },
        volume: both(office(90), between(48, 51, daily(2_900))),
      }),
      noise(domain, 0.3),
    ],
    events: [
      {
        ...{ what: "mail of a source times 30", day: 48, within: 3, rules: ["volume_spike"], endDay: 51 },
        ...{ about: null, cause: /microsoft/i },
      },
    ],
    checkpoints: [
      { day: END, actions: ["rehearse_quarantine", "quarantine"], names: null, expert: "rehearse quarantine" },
    ],
  });
};

/** A newsletter of every month, one of every week, a spring sale, and much mail at the start of the month: none is an alert. */
const bulkSender = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "verdant-garden.com";
  const own = { domain, network: "116.202.7", nameOf: (n: number) => `out${n}.${domain}`, selector: "vg" };
  const invoices: Stream["volume"] = (day) => (day % 30 === 2 ? 2_400 : 0);
  const sale: Stream["volume"] = (day) => (day === 55 && !isWeekend(day) ? 9_000 : 0);
  return plan(domain, "campaigns every month and week, a marked bulk sender with a sale", {
    selectors: ["vg", "k1", "mail"],
    changes: [{ day: 30, body: { bulk_senders: ["service:brevo"] } }],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 2, volume: both(daily(120), invoices) }),
      through(addresses, "mailchimp", {
        ...{ domain, hosts: 40, selector: "k1", returnPath: `mc.${domain}` },
        volume: both(monthly(6, 12_000), weekly(2, 900)),
      }),
      through(addresses, "brevo", { domain, hosts: 4, selector: "mail", volume: both(daily(100), sale) }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      { day: END, actions: ["rehearse_quarantine", "quarantine"], names: null, expert: "rehearse quarantine" },
    ],
  });
};

/** Plans of the domains whose volume changes. */
export const volumeDomains = (builder: Builder): DomainPlan[] =>
  [replay, compromised, bulkSender].map((make) => make(builder));
