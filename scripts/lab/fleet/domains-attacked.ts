/** Domains that others forge. */
import type { Builder } from "./builder.ts";
import { between, daily, type DomainPlan, END, office } from "./plan.ts";
import { FEW } from "./reporters.ts";
import { ownServers, through } from "./services.ts";
import { botnet, brokenServers, deceiver } from "./strangers.ts";

const campaign = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "kestrel-bank.com";
  const own = { domain, network: "62.138.9", nameOf: (n: number) => `out${n}.${domain}`, selector: "kb2025" };
  return plan(domain, "p=reject, forged for 21 days", {
    record: () => "p=reject; np=reject; {rua}",
    selectors: ["kb2025", "selector1"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 2, volume: daily(3000) }),
      through(addresses, "microsoft", {
        domain,
        volume: office(900),
        hosts: 8,
        selector: "selector1",
        returnPath: domain,
      }),
      botnet(addresses, { domain, volume: between(30, 51, daily(175)), addresses: 420, aDay: 40, copied: "kb2025" }),
      noise(domain, 0.4),
    ],
    lapses: [{ day: 57, hours: [12, 17], record: "p=none; {rua}" }],
    events: [
      {
        ...{ what: "the policy lapses for five hours", day: 57, within: 2, rules: ["policy_weakened"], about: null },
        ...{ cause: /none/, endDay: 58, beside: ["record_changed", "status_changed"] },
      },
      {
        ...{
          what: "campaign of forgers",
          day: 30,
          within: 6,
          rules: ["spoofing", "spoofing_campaign", "threat", "failure_spike", "new_source"],
        },
        ...{ about: null, cause: /unauthenticated|forged|spoof|threat/i, isOptional: true, endDay: 51 },
      },
    ],
    checkpoints: [{ day: END, actions: [null], names: null, expert: "arrived" }],
  });
};

const parked = ({ addresses, plan }: Builder): DomainPlan => {
  const domain = "kestrelbank-online.com";
  return plan(domain, "parked, five forged messages a day", {
    spf: "v=spf1 -all",
    reporters: [...FEW],
    streams: [botnet(addresses, { domain, volume: daily(5), addresses: 300, aDay: 5, names: ["secure", "login"] })],
    changes: [{ day: 62, body: { sends_mail: false } }],
    checkpoints: [
      {
        day: 40,
        actions: [null, "reject_all", "wait", "protect_missing_names", "set_sends_mail", "classify_domain"],
        names: /sends_mail|no mail/i,
        expert: "say that it sends no mail",
      },
      { day: END, actions: ["reject_all"], names: null, expert: "p=reject at once" },
    ],
  });
};

const forgedSteadily = ({ addresses, plan }: Builder): DomainPlan => {
  const domain = "norrland-energy.com";
  const expert = { actions: ["rehearse_quarantine", "quarantine"], names: null, expert: "all own mail passes: go on" };
  return plan(domain, "own mail fine, 4 % forged from lines at home", {
    selectors: ["selector1", "s1"],
    isForgedSteadily: true,
    streams: [
      through(addresses, "microsoft", {
        domain,
        volume: office(900),
        hosts: 9,
        selector: "selector1",
        returnPath: domain,
      }),
      through(addresses, "sendgrid", {
        domain,
        volume: daily(500),
        hosts: 4,
        selector: "s1",
        returnPath: `em17.${domain}`,
      }),
      botnet(addresses, { domain, volume: daily(50), addresses: 500, aDay: 22, throwaway: "qk3-offers.xyz" }),
    ],
    checkpoints: [
      { day: 25, ...expert },
      { day: END, ...expert },
    ],
  });
};

const compromised = ({ addresses, plan }: Builder): DomainPlan => {
  const domain = "halden-marine.com";
  const own = { domain, network: "37.27.15", nameOf: (n: number) => `smtp${n}.${domain}`, selector: "hm" };
  return plan(domain, "forged from servers with good names", {
    record: () => "p=quarantine; {rua}",
    selectors: ["hm", "selector1"],
    streams: [
      ownServers(addresses, { ...own, who: "own servers", hosts: 2, volume: daily(900) }),
      through(addresses, "microsoft", {
        domain,
        volume: office(700),
        hosts: 8,
        selector: "selector1",
        returnPath: domain,
      }),
      brokenServers(addresses, { domain, volume: daily(40), addresses: 220, aDay: 12 }),
    ],
    checkpoints: [
      {
        day: END,
        actions: ["reject", "rehearse_reject", null],
        names: null,
        expert: "reject, where nobody writes to lists",
      },
    ],
  });
};

const deceived = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "solstice-travel.com";
  const evil = (name: string, network: string, isSigned: boolean, from: number, to: number) =>
    deceiver(addresses, { domain, evil: name, network, hosts: 3, isSigned, volume: between(from, to, daily(30)) });
  return plan(domain, "others authenticate their own domain", {
    selectors: ["google", "s1"],
    streams: [
      through(addresses, "google", { domain, volume: office(500), hosts: 9, selector: "google", returnPath: domain }),
      through(addresses, "sendgrid", {
        domain,
        volume: daily(500),
        hosts: 4,
        selector: "s1",
        returnPath: `em9.${domain}`,
      }),
      evil("cheap-deals-now.top", "45.88.77", true, 25, 40),
      evil("prize-desk.click", "45.88.78", false, 48, 52),
      noise(domain, 0.3),
    ],
    events: [25, 48].map((day) => ({
      ...{ what: `a stranger's domain from day ${day}`, day, within: 5, rules: ["new_source", "spoofing", "threat"] },
      ...{ about: day === 25 ? /cheap-deals-now/ : /prize-desk|cheap-slices/, cause: null, isOptional: true },
    })),
    checkpoints: [
      { day: 30, actions: ["classify_sources"], names: /cheap-deals-now/, expert: "say what cheap-deals-now.top is" },
      {
        day: END,
        actions: ["rehearse_quarantine", "quarantine", "classify_sources"],
        names: null,
        expert: "rehearse quarantine",
      },
    ],
  });
};

/** Plans of the domains that are forged. */
export const attackedDomains = (builder: Builder): DomainPlan[] =>
  [campaign, parked, forgedSteadily, compromised, deceived].map((make) => make(builder));
