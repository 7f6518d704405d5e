/** Domains with many servers of their own, of which some fail. */
import type { Builder } from "./builder.ts";
import { type DomainPlan, END, office } from "./plan.ts";
import { ownServers } from "./services.ts";

const SOUND_HOSTS = 140;
const FAILING_HOSTS = 60;
const SOUND = ["rz", "bibliothek", "mathematik", "medizin", "verwaltung"];
const FAILING = ["chemie", "physik", "geographie"];

/** Sound hosts are sound, whatever other departments do, and the failing ones are one thing to fix. */
const university = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "uni-altmark.com";
  const nameIn = (departments: readonly string[]) => (n: number) =>
    `host${n}.${departments[n % departments.length]}.${domain}`;
  return plan(domain, "a university: 140 hosts pass, 60 hosts of three departments fail", {
    selectors: ["ua2025"],
    streams: [
      ownServers(addresses, {
        ...{ domain, who: "central servers", network: "141.44.1", hosts: SOUND_HOSTS, volume: office(1_500) },
        ...{ nameOf: nameIn(SOUND), selector: "ua2025" },
      }),
      ownServers(addresses, {
        ...{ domain, who: "hosts of departments", network: "141.44.20", hosts: FAILING_HOSTS, volume: office(350) },
        ...{ nameOf: nameIn(FAILING), selector: null, spf: "fail", accept: ["misconfigured"] },
      }),
      noise(domain, 0.4),
    ],
    checkpoints: [
      {
        ...{ day: END, actions: ["fix_sources"], names: /own servers/i },
        expert: "fix the hosts of the departments; leave the sound ones alone",
      },
    ],
  });
};

/** One small host fails beside a large server: its few messages do not hide in the line of the others. */
const smallHost = ({ addresses, plan, noise }: Builder): DomainPlan => {
  const domain = "kontor-lindau.com";
  return plan(domain, "one small host fails beside a large server", {
    selectors: ["kl"],
    streams: [
      ownServers(addresses, {
        ...{ domain, who: "mail server", network: "91.107.12", hosts: 1, volume: office(900) },
        ...{ nameOf: () => `mx.${domain}`, selector: "kl" },
      }),
      ownServers(addresses, {
        ...{ domain, who: "scanner", network: "91.107.13", hosts: 1, volume: office(12) },
        ...{ nameOf: () => `scanner.${domain}`, selector: null, spf: "fail", accept: ["misconfigured"] },
      }),
      noise(domain, 0.3),
    ],
  });
};

export const hostDomains = (builder: Builder): DomainPlan[] => [university(builder), smallHost(builder)];
