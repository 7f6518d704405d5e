import type { Log } from "../foundation/base/log.ts";
import type { Environment } from "../service/config.ts";

const NOTIFY_TIMEOUT_MS = 5_000;

/**
 * Tells systemd that the service is ready, if its unit has `Type=notify` (sd_notify(3)). Uses systemd's own program,
 * because the platform has no Unix datagram sockets; the unit needs `NotifyAccess=all`. A failure is logged.
 */
export const notifyReady = async ({ NOTIFY_SOCKET, PATH }: Environment, log: Log): Promise<void> => {
  if (NOTIFY_SOCKET === undefined) return;
  try {
    const child = Bun.spawn(["systemd-notify", "--ready"], {
      env: { NOTIFY_SOCKET, PATH },
      stdio: ["ignore", "ignore", "pipe"],
      timeout: NOTIFY_TIMEOUT_MS,
    });
    const [problem, status] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (status !== 0) log.warn("systemd could not be notified that the service is ready", { status, error: problem });
  } catch (error) {
    log.warn("systemd could not be notified that the service is ready", { error });
  }
};
