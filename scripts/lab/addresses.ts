import { ADDRESSES } from "./hosts.ts";

/** What `ip` says of an address that is there already, or gone already: left by a lab that was killed, or taken back before. */
const HARMLESS = /File exists|already assigned|Cannot assign requested address/;

const change = async (verb: "add" | "del"): Promise<void> => {
  for (const ip of ADDRESSES) {
    const child = Bun.spawn(["ip", "addr", verb, `${ip}/32`, "dev", "lo"], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (code !== 0 && !HARMLESS.test(stderr)) throw new Error(`ip addr ${verb} ${ip}: ${stderr.trim()}`);
  }
};

/** Puts every address of the lab on the loopback interface; Postfix answers only at addresses that an interface has. */
export const addAddresses = (): Promise<void> => change("add");

/** Takes them off again. */
export const removeAddresses = (): Promise<void> => change("del");
