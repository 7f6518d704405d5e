import { readFileSync } from "node:fs";

const PASSWD_PATH = "/etc/passwd";

/** The name of a user of this machine; `user ID 1234` for one without a name here, as in a container or a directory service. */
export const userNameOf = (id: number, passwd = readPasswd()): string => {
  const line = passwd.split("\n").find((one) => one.split(":")[2] === String(id));
  const name = line?.split(":")[0] ?? "";
  return name === "" ? `user ID ${id}` : name;
};

const readPasswd = (): string => {
  try {
    return readFileSync(PASSWD_PATH, "utf8");
  } catch {
    return "";
  }
};

/** Numeric id of the user of this process; 0 is root. */
export const ownUserId = (): number => process.geteuid?.() ?? 0;
