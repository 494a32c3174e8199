// Finds objects that may be parts of applications by name, parent and owner; built once for all applications of a file.
import { type Application, referenceOf } from "../model/application.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Plugin } from "../model/plugin.ts";
import type { Target } from "../model/target.ts";

type Named = "services" | "routes" | "certificates";

/** Of the configuration as it is when something is first looked up. */
export class PartIndex {
  readonly #config: GatewayConfig;
  readonly #names = new Map<Named, ReadonlyMap<string, string>>();
  #targets: ReadonlyMap<string, readonly Target[]> | null = null;
  #plugins: ReadonlyMap<string, readonly Plugin[]> | null = null;
  #owners: ReadonlyMap<string, Application> | null = null;

  constructor(config: GatewayConfig) {
    this.#config = config;
  }

  /** The id of the oldest object with the name. */
  byName(collection: Named, name: string): string | undefined {
    const known = this.#names.get(collection) ?? namesIn(this.#config[collection]);
    this.#names.set(collection, known);
    return known.get(name);
  }

  targetsOf(serviceId: string): readonly Target[] {
    const { targets } = this.#config;
    this.#targets ??= Map.groupBy(targets.values(), ({ service_id }) => service_id);
    return this.#targets.get(serviceId) ?? [];
  }

  pluginsNamed(name: string): readonly Plugin[] {
    this.#plugins ??= Map.groupBy(this.#config.plugins.values(), (plugin) => plugin.name);
    return this.#plugins.get(name) ?? [];
  }

  /** The application that the object is a part of. */
  ownerOf(id: string): Application | undefined {
    this.#owners ??= ownersIn(this.#config.applications);
    return this.#owners.get(id);
  }
}

function namesIn(
  objects: ReadonlyMap<string, { readonly id: string; readonly name: string | null }>,
): ReadonlyMap<string, string> {
  const ids = new Map<string, string>();
  for (const { id, name } of objects.values())
    if (name !== null && !ids.has(name)) ids.set(name, id);
  return ids;
}

function ownersIn(applications: GatewayConfig["applications"]): ReadonlyMap<string, Application> {
  const owners = new Map<string, Application>();
  for (const application of applications.values())
    for (const part of application.parts) {
      const id = referenceOf(part)?.id;
      if (id !== undefined && !owners.has(id)) owners.set(id, application);
    }
  return owners;
}
