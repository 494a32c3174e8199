// Finds the files that a container has from its project: bind mounts and configs; knows no proxy.
import { isDocument } from "../../control/body.ts";
import { joined, textIn } from "../set-up/tree.ts";
import type { Project, ProjectService } from "./project.ts";
import { substituted } from "./variables.ts";

/** A path of a container. `unknown`: it has something there that is not in the files. */
export type Mounted =
  | { readonly kind: "none" }
  | { readonly kind: "file"; readonly path: string; readonly text: string }
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "unknown"; readonly what: string };

interface Mount {
  readonly target: string;
  /** As the file of Compose names it. */
  readonly source: string;
  /** Path in the files; null: it is outside of them. */
  readonly path: string | null;
  /** A volume that Docker keeps. */
  readonly isVolume: boolean;
  /** Of a config that is written in the file of Compose. */
  readonly content: string | null;
}

export class Mounts {
  readonly #project: Project;
  readonly #mounts: readonly Mount[];

  constructor({ definition, project }: ProjectService) {
    this.#project = project;
    const volumes = listOf(definition["volumes"]).flatMap((one) => volumeOf(one, project) ?? []);
    const configs = listOf(definition["configs"]).flatMap((one) => configOf(one, project) ?? []);
    this.#mounts = [...configs, ...volumes].toSorted((a, b) => b.target.length - a.target.length);
  }

  /** What the container has at this path. */
  at(path: string): Mounted {
    const mount = this.#mounts.find(({ target }) => isWithin(path, target));
    if (mount === undefined) return { kind: "none" };
    if (mount.content !== null) return { kind: "file", path: mount.source, text: mount.content };
    const rest = path.slice(mount.target.length).replace(/^\//, "");
    const place = mount.path === null ? null : joined(mount.path, rest);
    const { tree } = this.#project;
    const unknown: Mounted = { kind: "unknown", what: mount.source };
    if (place === null) return unknown;
    const text = textIn(tree, place);
    if (text !== null) return { kind: "file", path: place, text };
    if (tree.read(place) !== null) return unknown;
    if (tree.hasFolder(place)) return { kind: "folder", path: place };
    // The folder is there without the file.
    return rest !== "" && mount.path !== null && tree.hasFolder(mount.path)
      ? { kind: "none" }
      : unknown;
  }

  /** Whether a path is a volume of this name, which another container may have, too. */
  volumeAt(path: string): string | null {
    const mount = this.#mounts.find(({ target }) => isWithin(path, target));
    return mount?.isVolume === true ? mount.source : null;
  }

  hasVolume(name: string): boolean {
    return this.#mounts.some(({ source, isVolume }) => isVolume && source === name);
  }
}

const isWithin = (path: string, target: string): boolean =>
  path === target || path.startsWith(target === "/" ? "/" : `${target}/`);

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** `./a:/b:ro`, `name:/b`, or the long form. */
function volumeOf(value: unknown, project: Project): Mount | null {
  const given = isDocument(value)
    ? { source: String(value["source"] ?? ""), target: String(value["target"] ?? "") }
    : parsed(String(value), project);
  if (given === null || given.target === "") return null;
  const { text } = substituted(given.source, project.variables);
  const source = text ?? given.source;
  const isVolume = /^[\w][\w.-]*$/.test(source) || source === "";
  const path = text === null || isVolume ? null : joined(project.folder, text);
  const target = (substituted(given.target, project.variables).text ?? given.target).replace(
    /(?<=.)\/+$/,
    "",
  );
  return { target, source: source === "" ? target : source, path, isVolume, content: null };
}

function parsed(value: string, { variables }: Project) {
  const { text } = substituted(value, variables);
  // Colons of `${A:-b}` separate nothing.
  const [first = "", second] = (text ?? value).split(/:(?![^{]*\})/);
  return second === undefined ? { source: "", target: first } : { source: first, target: second };
}

/** `name`, which is mounted at /name, or the long form. */
function configOf(value: unknown, project: Project): Mount | null {
  const given = isDocument(value) ? value : { source: value };
  const name = String(given["source"] ?? "");
  const target = String(given["target"] ?? `/${name}`);
  const config = project.configs[name];
  const { file = null, content = null } = isDocument(config) ? config : {};
  const { text } = substituted(String(file ?? ""), project.variables);
  const inline = typeof content === "string" ? substituted(content, project.variables).text : null;
  return {
    target: target.startsWith("/") ? target : `/${target}`,
    source: `config ${name}`,
    path: file === null || text === null ? null : joined(project.folder, text),
    isVolume: false,
    content: inline,
  };
}
