import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { DNS } from "./hosts.ts";

/** What a program of a namespace sees otherwise than the machine does. */
interface View {
  /** Files of ours in place of the machine's: the machine's path → our path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Directories laid over the machine's own, by where they are seen. */
  readonly overlays?: Readonly<Record<string, readonly string[]>>;
  /** Directories that are empty there, and the directories made inside them. */
  readonly empty?: Readonly<Record<string, readonly string[]>>;
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** The command that runs `argv` in a mount namespace of its own, so that the machine's files stay as they are. */
export const inNamespace = (
  { files = {}, overlays = {}, empty = {} }: View,
  argv: readonly string[],
): readonly string[] => {
  const script = [
    ...Object.entries(files).map(([theirs, ours]) => `mount --bind ${quoted(ours)} ${quoted(theirs)}`),
    ...Object.entries(overlays).map(([path, lower]) => {
      const layers = [...lower, path].join(":");
      return `mount -t overlay overlay -o ${quoted(`lowerdir=${layers}`)} ${quoted(path)}`;
    }),
    ...Object.entries(empty).flatMap(([directory, inside]) => [
      `mount -t tmpfs -o mode=755 tmpfs ${quoted(directory)}`,
      ...inside.map((path) => `mkdir -p -m 711 ${quoted(join(directory, path))}`),
    ]),
    `exec ${argv.map(quoted).join(" ")}`,
  ].join(" && ");
  return ["unshare", "--mount", "sh", "-c", script];
};

/** Makes a directory for a server below `parent` that the server's own user can enter, and returns its path. */
export const serverDirectory = async (
  parent: string,
  name: string,
  inside: readonly string[] = [],
): Promise<string> => {
  const directory = join(parent, name);
  for (const part of ["", ...inside]) {
    await mkdir(join(directory, part), { recursive: true });
    await chmod(join(directory, part), 0o755);
  }
  return directory;
};

/** A user, and a group of the same name and number, that a program insists on and that no package made. */
interface User {
  readonly name: string;
  readonly id: number;
}

/** Writes copies of /etc/passwd and /etc/group that know `users` into `directory`: the `files` of a view. */
export const withUsers = async (directory: string, users: readonly User[]): Promise<Record<string, string>> => {
  const passwd = users.map(({ name, id }) => `${name}:x:${id}:${id}::${directory}:/bin/false\n`);
  const group = users.map(({ name, id }) => `${name}:x:${id}:\n`);
  const files = { "/etc/passwd": join(directory, "passwd"), "/etc/group": join(directory, "group") };
  await Bun.write(files["/etc/passwd"], (await Bun.file("/etc/passwd").text()) + passwd.join(""));
  await Bun.write(files["/etc/group"], (await Bun.file("/etc/group").text()) + group.join(""));
  return files;
};

/** Writes a resolv.conf into `directory` that names the lab's own DNS: the `files` of a view of whoever asks DNS. */
export const withLabResolver = async (directory: string): Promise<Record<string, string>> => {
  const path = join(directory, "resolv.conf");
  await Bun.write(path, `nameserver ${DNS.ip}\noptions timeout:2 attempts:2\n`);
  return { "/etc/resolv.conf": path };
};
