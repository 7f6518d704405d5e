/** Domains whose own or strangers' mail comes from hosters, whose senders' names come late, or whose parent is a public suffix. */
import type { Builder } from "./builder.ts";
import { createChance } from "./chance.ts";
import { between, daily, type DomainPlan, END, type Host, office, rarely, type Stream } from "./plan.ts";
import { ownServers, through } from "./services.ts";
import { forwarder } from "./strangers.ts";

const mailboxes = (addresses: Builder["addresses"], domain: string, count: number) =>
  through(addresses, "microsoft", {
    domain,
    volume: office(count),
    hosts: 6,
    selector: "selector1",
    returnPath: domain,
  });

const formAtMailboxProvider = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "tischlerei-hansen.de";
  const form = { domain, network: "212.227.17", hosts: 3, selector: null, envelope: "kundenserver.de" };
  const passed = { domain, selector: "selector1", network: "82.165.159", hosts: 2, envelope: null };
  const expert = {
    actions: ["classify_sources"],
    names: /IONOS/,
    expert: "ask whether the form at IONOS is the firm's",
  };
  return plan(domain, "a website form at a mailbox provider that hosts websites", {
    selectors: ["selector1"],
    streams: [
      mailboxes(addresses, domain, 95),
      ownServers(addresses, {
        ...{ ...form, who: "website form at IONOS", volume: daily(8), accept: ["unknown", "misconfigured"] },
        nameOf: () => "mout.kundenserver.de",
      }),
      forwarder(addresses, {
        ...{ ...passed, who: "customers of IONOS who forward", nameOf: () => "mout-xforward.kundenserver.de" },
        volume: rarely(0.4, 3),
      }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      { day: 30, ...expert },
      { day: END, ...expert },
    ],
  });
};

const formAtWebHoster = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "praxis-sundermann.de";
  const envelope = "dd32416.kasserver.com";
  const form = { domain, network: "85.13.140", hosts: 3, selector: null, envelope };
  const passed = { domain, selector: "selector1", network: "85.13.150", envelope: null };
  return plan(domain, "website forms at a web hoster, on three of its hosts", {
    selectors: ["selector1"],
    streams: [
      mailboxes(addresses, domain, 95),
      ownServers(addresses, {
        ...{ ...form, who: "website forms at All-Inkl", volume: daily(8), accept: ["unknown", "misconfigured"] },
        nameOf: (n) => `dd${32_415 + n}.kasserver.com`,
      }),
      forwarder(addresses, {
        ...{ ...passed, who: "customers of All-Inkl who forward", nameOf: () => "dd51200.kasserver.com" },
        volume: rarely(0.4, 3),
      }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      {
        ...{ day: END, actions: ["classify_sources"], names: /All-Inkl/ },
        expert: "ask whether the forms at All-Inkl are the practice's",
      },
    ],
  });
};

const LATE_DAY = 40;
/** Longer than the simulation. */
const FOR_EVER_HOURS = 10_000;

/** Somebody sends as a forgotten name of the domain, whose SPF still authorizes a host that others rent now. */
const lateName = (
  { addresses, plan, noise }: Builder,
  domain: string,
  { network, host, hours }: { readonly network: string; readonly host: string; readonly hours: number },
): DomainPlan => {
  const own = { domain, network: `${network}.20`, nameOf: (n: number) => `mx${n}.${domain}`, selector: "ho" };
  const hijacked = ownServers(addresses, {
    ...{ domain, who: host, network: `${network}.88`, hosts: 2, selector: null, envelope: `promo.${domain}` },
    ...{ nameOf: (n: number) => `vps${n}.${host}`, volume: between(LATE_DAY, 50, daily(25)) },
    // Without a name nothing but its network tells it from the domain's own servers.
    isPooled: hours === FOR_EVER_HOURS,
    headerFrom: `promo.${domain}`,
  });
  return plan(domain, "a new sender that passes, with a reverse name that comes late", {
    selectors: ["ho", "selector1"],
    names: ["promo"],
    streams: [
      mailboxes(addresses, domain, 140),
      ownServers(addresses, { ...own, who: "own servers", hosts: 2, volume: daily(220) }),
      hijacked,
      noise(domain, 0.3),
    ],
    unanswered: hijacked.hosts(LATE_DAY, createChance(1)).map(({ ip }) => ({ ip, day: LATE_DAY, hours })),
    events: [
      {
        ...{ what: `${host} sends as the domain`, day: LATE_DAY, within: 5, rules: ["new_source"] },
        ...{ about: null, cause: hours === FOR_EVER_HOURS ? /88\.0\/24/ : new RegExp(host), beside: ["new_subdomain"] },
      },
    ],
    checkpoints: [],
  });
};

const suffixAbove = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const county = "kreis-weserland.de";
  const domain = `amt-nordried.${county}`;
  const own = { domain, network: "195.37.120", nameOf: (n: number) => `mail${n}.${domain}`, selector: "amt" };
  const above = { domain, network: "195.37.8", nameOf: (n: number) => `relay${n}.${county}`, selector: "kreis" };
  return plan(domain, "a parent that declares itself a public suffix, and signs mail of the domain", {
    spf: `v=spf1 mx include:_spf.${county} -all`,
    selectors: ["amt"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 2, volume: office(160) }),
      ownServers(addresses, {
        ...{ ...above, who: "relays of the county", hosts: 2, volume: office(40), signer: county, envelope: county },
        // Receivers without the tree walk still call it aligned.
        accept: ["unknown", "misconfigured"],
      }),
      noise(domain, 0.3),
    ],
    dns: [{ day: -100, name: `_dmarc.${county}`, records: { TXT: ["v=DMARC1; p=none; psd=y"] } }],
    checkpoints: [
      {
        ...{ day: END, actions: ["classify_sources", "fix_sources"], names: /kreis-weserland\.de/ },
        ...{ never: /on the servers/, expert: "the county's signature is another organization's: set it up there" },
      },
    ],
  });
};

const STRANGERS = [
  "cheap-lux.top",
  "gift-voucher.click",
  "parcel-desk.xyz",
  "loan-fast.top",
  "vip-win.icu",
  "pill-mart.top",
];
const STRANGERS_DAY = 30;

/** Spammers who authenticate domains of their own, and use many domains in From. */
const strangersOf = ({ addresses }: Builder) => {
  const senders = STRANGERS.map((evil, at) => {
    const network = `45.95.${160 + at}`;
    addresses.origin([network], { asn: 213_000 + at, country: "NL", name: `SLICES-${at}` });
    return { evil, hosts: addresses.take([network], 2, () => `mta${at}.${evil}`) };
  });
  return (domain: string): readonly Stream[] => senders.map((sender) => strangerTo(domain, sender));
};

const strangerTo = (
  domain: string,
  { evil, hosts }: { readonly evil: string; readonly hosts: readonly Host[] },
): Stream => ({
  who: evil,
  accept: ["threat", "unknown"],
  volume: between(STRANGERS_DAY, 999, daily(14)),
  hosts: () => hosts,
  mail: () => ({
    ...{ headerFrom: domain, envelope: `bounce.${evil}`, spf: { domain: `bounce.${evil}`, result: "pass" } },
    ...{ dkim: [], passedOn: null },
  }),
});

const withStrangers = (
  { addresses, plan, noise }: Builder,
  domain: string,
  strangers: ReturnType<typeof strangersOf>,
): DomainPlan =>
  plan(domain, "strangers who authenticate domains of their own, and send to many domains", {
    selectors: ["selector1"],
    streams: [mailboxes(addresses, domain, 400), ...strangers(domain), noise(domain, 0.3)],
    events: STRANGERS.map((evil) => ({
      ...{ what: `${evil} begins to send`, day: STRANGERS_DAY, within: 6, rules: ["new_source"], isOptional: true },
      ...{ about: new RegExp(evil), cause: null },
    })),
    checkpoints: [
      {
        ...{ day: END, actions: ["classify_sources"], names: /6 senders/, expert: "one question about all six" },
      },
    ],
  });

/** Plans of the domains with mail from hosters. */
export const hostingDomains = (builder: Builder): DomainPlan[] => {
  const strangers = strangersOf(builder);
  return [
    formAtMailboxProvider(builder),
    formAtWebHoster(builder),
    lateName(builder, "hanse-optik.de", { network: "91.198", host: "bulk-vps.net", hours: 34 }),
    lateName(builder, "elbe-akustik.de", { network: "91.199", host: "b-dnsdown.net", hours: FOR_EVER_HOURS }),
    suffixAbove(builder),
    ...["kanzlei-ostmann.de", "datenblick-soft.io"].map((domain) => withStrangers(builder, domain, strangers)),
  ];
};
