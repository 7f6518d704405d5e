import { createHash } from "node:crypto";
import { z } from "zod";

/** What is used of `npm sbom --sbom-format cyclonedx`; everything else is kept as it is. */
const BillOfMaterials = z.looseObject({
  serialNumber: z.string(),
  metadata: z.looseObject({
    timestamp: z.string(),
    component: z.looseObject({ "bom-ref": z.string(), name: z.string() }),
  }),
  components: z.array(z.looseObject({ "bom-ref": z.string(), name: z.string(), version: z.string() })),
  dependencies: z.array(z.looseObject({ ref: z.string(), dependsOn: z.array(z.string()).optional() })),
});

const Lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      dev: z.boolean().optional(),
      optional: z.boolean().optional(),
      devOptional: z.boolean().optional(),
    }),
  ),
});

/** A development package that the executable contains nevertheless. */
const RUNTIME = "bun";

const nameOf = (path: string): string => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);

/** `name@version` of each package that the executable can contain, by the lock file, and whether it may be missing. */
const lockedPackages = (lockText: string): ReadonlyMap<string, { readonly isOptional: boolean }> =>
  new Map(
    Object.entries(Lock.parse(JSON.parse(lockText)).packages)
      .filter(([path, { dev }]) => path !== "" && (dev !== true || nameOf(path) === RUNTIME))
      .map(([path, { version = "", optional = false, devOptional = false }]) => [
        `${nameOf(path)}@${version}`,
        { isOptional: optional || devOptional },
      ]),
  );

/** A UUID that depends on the content only, in the form of version 5 (RFC 9562). */
const contentUuid = (content: unknown): string => {
  const hash = createHash("sha256").update(JSON.stringify(content)).digest("hex");
  return [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `5${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ].join("-");
};

/**
 * The SBOM (CycloneDX) of a release from that of npm for all packages: those that only developers need are dropped, by the
 * lock file (`npm sbom --omit dev` also drops direct dependencies that development packages share). Serial number and time
 * depend on the content and the commit only. Throws when a package of the lock file is missing.
 */
export const releaseBillOfMaterials = (
  npmText: string,
  { lockText, time }: { readonly lockText: string; readonly time: Date },
): string => {
  const bill = BillOfMaterials.parse(JSON.parse(npmText));
  const locked = lockedPackages(lockText);
  const components = bill.components.filter(({ name, version }) => locked.has(`${name}@${version}`));
  const listed = new Set(components.map(({ name, version }) => `${name}@${version}`));
  const missing = [...locked]
    .filter(([name, { isOptional }]) => !isOptional && !listed.has(name))
    .map(([name]) => name);
  if (missing.length > 0) throw new Error(`npm's SBOM has no ${missing.join(", ")} of package-lock.json; run npm ci`);
  const { metadata } = bill;
  const kept = new Set([metadata.component["bom-ref"], ...components.map((each) => each["bom-ref"])]);
  const released = {
    ...bill,
    serialNumber: `urn:uuid:${contentUuid(components)}`,
    metadata: {
      ...metadata,
      timestamp: time.toISOString(),
      component: { ...metadata.component, type: "application", name: "postwarden" },
    },
    components: components.map((each) => ({ ...each, scope: "required" })),
    dependencies: bill.dependencies
      .filter(({ ref }) => kept.has(ref))
      .map((each) => ({ ...each, dependsOn: each.dependsOn?.filter((ref) => kept.has(ref)) ?? [] })),
  };
  return `${JSON.stringify(released, null, 2)}\n`;
};
