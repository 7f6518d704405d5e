import { isIP } from "node:net";

export interface ListenAttempt {
  readonly host: string;
  readonly port: number;
}

/** Why the HTTP port cannot be listened on, in a sentence that names the setting to change. */
export const describeListenFailure = (error: unknown, { host, port }: ListenAttempt): string => {
  // The platform says EADDRINUSE of a name that has no address, too.
  const isName = isIP(host) === 0 && host !== "localhost";
  switch (error instanceof Error && "code" in error ? error.code : undefined) {
    case "EADDRINUSE":
      return isName
        ? `POSTWARDEN_HOST: "${host}" is not an address of this machine, or its port ${port} is in use.`
        : `Port ${port} of ${host} is in use by another program. Set POSTWARDEN_PORT to another one.`;
    case "EACCES":
      return `Port ${port} may not be used: ports below 1024 need root or the capability CAP_NET_BIND_SERVICE.`;
    case "EADDRNOTAVAIL":
    case "ENOENT":
      return `POSTWARDEN_HOST: "${host}" is not an address of this machine.`;
    default:
      return `Cannot listen on ${host}:${port}: ${error instanceof Error ? error.message : String(error)}`;
  }
};
