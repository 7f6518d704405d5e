import { afterEach, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** As npm ci: it removes what is there, takes a while, and would break another one that runs meanwhile. */
const NPM = `#!/bin/sh
mkdir running || exit 1
rm -rf node_modules
echo installed >> installed
sleep 0.3
mkdir -p node_modules/.bin
printf '#!/bin/sh\\necho ran "$@"\\n' > node_modules/.bin/bun
chmod +x node_modules/.bin/bun
rmdir running
`;

/** A fresh clone, in which packages are installed by a script. */
const newClone = (npm = NPM) => {
  const folder = mkdtempSync(join(tmpdir(), "install-once-"));
  folders.push(folder);
  mkdirSync(join(folder, "scripts"));
  copyFileSync(join(import.meta.dir, "../../scripts/run.mjs"), join(folder, "scripts/run.mjs"));
  writeFileSync(join(folder, "package-lock.json"), "{}");
  writeFileSync(join(folder, "npm"), npm);
  chmodSync(join(folder, "npm"), 0o755);
  const start = async () => {
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
    const started = Bun.spawn(["node", "scripts/run.mjs", "hello"], {
      cwd: folder,
      env,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([new Response(started.stdout).text(), new Response(started.stderr).text()]);
    return { status: await started.exited, out, err };
  };
  return { start, lock: join(folder, ".installing"), installed: () => readFileSync(join(folder, "installed"), "utf8") };
};

test("of several that start at once in a fresh clone one installs, and all run", async () => {
  const { start, lock, installed } = newClone();
  const all = await Promise.all([start(), start(), start()]);
  expect(all.map(({ status, out }) => [status, out])).toEqual(Array(3).fill([0, "ran hello\n"]));
  expect(installed()).toBe("installed\n");
  expect(existsSync(lock)).toBe(false);
});

test("what a process that is gone left holds nobody up", async () => {
  const { start, lock, installed } = newClone();
  writeFileSync(lock, "4194305");
  const all = await Promise.all([start(), start()]);
  expect(all.map(({ status }) => status)).toEqual([0, 0]);
  expect(installed()).toBe("installed\n");
  expect(existsSync(lock)).toBe(false);
});

test("an installation that fails is said, and the next start tries again", async () => {
  const { start, lock } = newClone("#!/bin/sh\nexit 1\n");
  const { status, err } = await start();
  expect([status, err]).toEqual([1, expect.stringContaining('"npm ci --no-audit --no-fund --loglevel=error" failed.')]);
  expect(existsSync(lock)).toBe(false);
});
