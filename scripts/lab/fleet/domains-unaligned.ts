/** Domains with senders whose mail fails, from the first day to the last. Their owners need advice, no alerts. */
import type { Builder } from "./builder.ts";
import { daily, type DomainPlan, END, holiday, office, weekly } from "./plan.ts";
import { ownServers, through } from "./services.ts";
import { brokenServers } from "./strangers.ts";

const unalignedServices = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "maplehome-shop.com";
  const own = { domain, network: "138.201.7", nameOf: () => `mail.${domain}`, selector: "dkim" };
  const expert = {
    actions: ["fix_sources"],
    names: /mailchimp/i,
    never: /np=reject/,
    expert: "set up DKIM at Mailchimp",
  };
  return plan(domain, "Mailchimp and Zendesk unaligned", {
    selectors: ["dkim", "google"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 1, volume: holiday(28, 0.25, daily(420)) }),
      through(addresses, "google", {
        domain,
        volume: holiday(28, 0.2, office(200)),
        hosts: 10,
        selector: "google",
        returnPath: domain,
      }),
      through(addresses, "mailchimp", { domain, volume: daily(380), hosts: 10, selector: null }),
      through(addresses, "zendesk", { domain, volume: office(90), hosts: 4, selector: null }),
      noise(domain, 0.4),
    ],
    checkpoints: [
      { day: 30, ...expert },
      { day: END, ...expert },
    ],
  });
};

const strict = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "quillon-legal.com";
  const app = {
    domain,
    network: "116.203.88",
    nameOf: () => `app.${domain}`,
    selector: "app",
    signer: `mail.${domain}`,
  };
  return plan(domain, "strict alignment, an application signs below", {
    record: () => "p=none; adkim=s; aspf=s; {rua}",
    selectors: ["selector1", "app._domainkey.mail"],
    streams: [
      through(addresses, "microsoft", {
        domain,
        volume: office(260),
        hosts: 7,
        selector: "selector1",
        returnPath: domain,
      }),
      ownServers(addresses, {
        ...app,
        who: "application",
        hosts: 1,
        volume: daily(120),
        envelope: `mail.${domain}`,
        accept: ["misconfigured"],
      }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      {
        day: END,
        actions: ["fix_sources"],
        names: /quillon-legal\.com/i,
        never: /np=reject/,
        expert: "sign with the exact domain, or relax adkim",
      },
    ],
  });
};

const officeServer = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "brueckner-bau.de";
  const office12 = { domain, network: "217.91.40", nameOf: () => null, selector: null, spf: "softfail" as const };
  return plan(domain, "office server without a name, once a week, unsigned", {
    selectors: ["selector1"],
    streams: [
      through(addresses, "microsoft", {
        domain,
        volume: office(220),
        hosts: 6,
        selector: "selector1",
        returnPath: domain,
      }),
      ownServers(addresses, {
        ...office12,
        who: "office server",
        hosts: 1,
        volume: weekly(0, 26),
        accept: ["misconfigured", "unknown"],
      }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      {
        day: END,
        actions: ["fix_sources", "classify_sources"],
        names: /217\.91\.40/,
        expert: "look at the server in the office",
      },
    ],
  });
};

const website = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "thistle-books.co.uk";
  const web = {
    domain,
    network: "185.16.41",
    nameOf: () => "web12.stagehost.eu",
    selector: null,
    spf: "none" as const,
  };
  const shop = { domain, network: "164.90.11", nameOf: (n: number) => `out${n}.eventkit-mail.io`, selector: "ek" };
  return plan(domain, "a website that signs nothing, a supplier whom no table knows", {
    selectors: ["google"],
    streams: [
      through(addresses, "google", { domain, volume: office(180), hosts: 8, selector: "google", returnPath: domain }),
      ownServers(addresses, {
        ...{ ...web, who: "website", hosts: 1, volume: daily(11), envelope: "web12.stagehost.eu" },
        accept: ["misconfigured", "unknown"],
      }),
      ownServers(addresses, {
        ...{ ...shop, who: "eventkit-mail.io", hosts: 3, volume: daily(40), envelope: "bounce.eventkit-mail.io" },
        ...{ signer: "eventkit-mail.io", accept: ["misconfigured", "unknown"] },
      }),
      brokenServers(addresses, { domain, volume: daily(2), addresses: 60, aDay: 2 }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      {
        ...{ day: END, actions: ["fix_sources", "classify_sources"], names: /eventkit-mail/ },
        expert: "look at eventkit-mail.io first, then at the website",
      },
    ],
  });
};

const spfOnly = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "lindner-handwerk.de";
  const host = { domain, network: "212.227.126", nameOf: (n: number) => `mout${n}.kundenserver.de`, selector: null };
  return plan(domain, "SPF only, through a hoster", {
    spf: "v=spf1 include:_spf.kundenserver.de ~all",
    streams: [ownServers(addresses, { ...host, who: "IONOS", hosts: 5, volume: office(60) }), noise(domain, 0.3)],
    checkpoints: [
      { day: END, actions: ["rehearse_quarantine", "quarantine"], names: null, expert: "rehearse quarantine" },
    ],
  });
};

const newsletter = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "cedar-theatre.org";
  return plan(domain, "weekly newsletter through an unaligned service", {
    selectors: ["google"],
    streams: [
      through(addresses, "google", { domain, volume: office(120), hosts: 8, selector: "google", returnPath: domain }),
      through(addresses, "mailjet", { domain, volume: weekly(3, 1500), hosts: 8, selector: null }),
      noise(domain, 0.3),
    ],
    checkpoints: [
      { day: END, actions: ["fix_sources"], names: /mailjet/i, never: /np=reject/, expert: "set up DKIM at Mailjet" },
    ],
  });
};

/** Plans of the domains with misconfigured senders. */
export const unalignedDomains = (builder: Builder): DomainPlan[] =>
  [unalignedServices, strict, officeServer, website, spfOnly, newsletter].map((make) => make(builder));
