import { readFileSync } from "node:fs";
import { ADDRESSES, IPV6 } from "./hosts.ts";

/** What `ip` says of an address that is there already, or gone already: left by a lab that was killed, or taken back before. */
const HARMLESS = /File exists|already assigned|Cannot assign requested address/;
const IPV6_SWITCH = "/proc/sys/net/ipv6/conf/lo/disable_ipv6";

const change = async (verb: "add" | "del"): Promise<void> => {
  const wanted = [...ADDRESSES.map((ip) => `${ip}/32`), ...(hasIpv6() ? [`${IPV6.dead}/128`] : [])];
  for (const prefix of wanted) {
    const child = Bun.spawn(["ip", "addr", verb, prefix, "dev", "lo"], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (code !== 0 && !HARMLESS.test(stderr)) throw new Error(`ip addr ${verb} ${prefix}: ${stderr.trim()}`);
  }
};

/** Whether the loopback interface of this machine has IPv6; where it has not, the rows that need it are left out. */
export const hasIpv6 = (): boolean => {
  try {
    return readFileSync(IPV6_SWITCH, "utf8").trim() === "0";
  } catch {
    return false;
  }
};

/** Puts every address of the lab on the loopback interface; Postfix answers only at addresses that an interface has. */
export const addAddresses = (): Promise<void> => change("add");

/** Removes the addresses from the interface. */
export const removeAddresses = (): Promise<void> => change("del");
