import { DOCTOR_DNS_TIMEOUTS } from "../doctor/dns-check.ts";
import { examine, examinedByService, type Examined } from "../doctor/open.ts";
import { baseUrlOf, mailHostOf, type Config } from "./config.ts";
import { dnsServersOf, systemPlatform } from "./platform.ts";
import type { DoctorFinding } from "../doctor/doctor-check.ts";

type MachineOptions = Omit<Examined, "platform" | "dnsServers" | "baseUrl" | "mailHost">;

/** Checks this machine and its settings, with connections of its own. */
export const examineMachine = async (config: Config, options: MachineOptions): Promise<readonly DoctorFinding[]> => {
  const platform = systemPlatform(config, DOCTOR_DNS_TIMEOUTS);
  const addresses = { baseUrl: baseUrlOf(config, config.port), mailHost: mailHostOf(config) };
  const examined = { ...options, ...addresses, platform, dnsServers: dnsServersOf(config) };
  return examine(config, examined).finally(() => platform.close());
};

/** The same inside the service, which has opened its database. */
export const examineServer = (
  config: Config,
  database: string,
  testedLists: Examined["testedLists"],
): Promise<readonly DoctorFinding[]> => examineMachine(config, { ...examinedByService(database), testedLists });
