import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { POSTGREY, POSTGREY_LONG } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";

/** How long a first try is turned away: short enough for the binary's retries under test, and far beyond them. */
const SHORT_DELAY_S = 2;
const LONG_DELAY_S = 3600;

interface Greylist {
  readonly name: string;
  readonly at: { readonly ip: string; readonly port: number };
  readonly delayS: number;
}

const GREYLISTS: readonly Greylist[] = [
  { name: "postgrey", at: POSTGREY, delayS: SHORT_DELAY_S },
  { name: "postgrey-long", at: POSTGREY_LONG, delayS: LONG_DELAY_S },
];

/** Starts the two postgrey daemons that Postfix asks. Their whitelists are empty, and
 * no client passes for its neighbour. */
export const startPostgrey = async (supervisor: Supervisor, parent: string): Promise<void> => {
  const empty = join(parent, "postgrey-empty");
  await Bun.write(empty, "");
  for (const { name, at, delayS } of GREYLISTS) {
    const directory = join(parent, name);
    await mkdir(directory);
    await chmod(directory, 0o700);
    await supervisor.run(["chown", "postgrey", directory]);
    supervisor.start({
      name,
      argv: [
        ...["postgrey", `--inet=${at.ip}:${at.port}`, `--delay=${delayS}`, `--dbdir=${directory}`],
        ...["--user=postgrey", "--group=postgrey", "--auto-whitelist-clients=0", "--lookup-by-host"],
        ...[`--whitelist-clients=${empty}`, `--whitelist-recipients=${empty}`, "--syslog-facility=mail"],
      ],
    });
  }
  for (const { name, at } of GREYLISTS) await supervisor.waitForPort(name, at.ip, at.port);
};
