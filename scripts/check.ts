/** `npm run check`: types, format, lint, dead code. Runs all of them and fails if one does. */
const bin = new URL("../node_modules/.bin/", import.meta.url).pathname;

const steps: ReadonlyArray<readonly [string, readonly string[]]> = [
  ["types", [process.execPath, "check", "--no-script"]],
  ["format", [process.execPath, "fmt", "--check", "--no-script", "src", "scripts"]],
  ["lint", [`${bin}biome`, "lint", "--error-on-warnings"]],
  ["dead code", [`${bin}knip`]],
];

let failures = 0;
for (const [name, command] of steps) {
  console.log(`── ${name}`);
  const { exitCode } = Bun.spawnSync([...command], { stdio: ["ignore", "inherit", "inherit"] });
  if (exitCode !== 0) failures++;
}
process.exit(failures === 0 ? 0 : 1);
