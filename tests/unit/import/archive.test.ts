// Archives of set-ups: what is read from them, and the one sentence that a hostile one gets.
import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { unpacked } from "../../../src/import/set-up/archive.ts";
import { filesOfForm } from "../../../src/import/set-up/form.ts";
import { TREE_LIMITS } from "../../../src/import/set-up/tree.ts";
import { ApiError } from "../../../src/model/error.ts";
import { entriesOf, tarOf, zipOf } from "../../support/set-up-files.ts";

const files = { "nginx/nginx.conf": "events {}", "nginx/sites/ä.conf": "x".repeat(5000) };

const text = (bytes: Uint8Array | null | undefined) => new TextDecoder().decode(bytes ?? undefined);

function problem(read: () => unknown): { readonly status: number; readonly message: string } {
  try {
    read();
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, message: error.message };
    throw error;
  }
  throw new Error("was read");
}

test.each([
  ["tar", tarOf(entriesOf(files))],
  ["tar.gz", gzipSync(tarOf(entriesOf(files)))],
  ["zip, deflated", zipOf(entriesOf(files))],
  ["zip, stored", zipOf(entriesOf(files), { stores: true })],
])("%s: all files are read", (_, bytes) => {
  const tree = unpacked(bytes);
  expect(tree?.paths()).toEqual(Object.keys(files).toSorted());
  for (const [path, content] of Object.entries(files)) expect(text(tree?.read(path))).toBe(content);
  expect(tree?.hasFolder("nginx/sites")).toBe(true);
  expect(tree?.hasFolder("nginx/other")).toBe(false);
  expect(tree?.read("nginx")).toBe(null);
});

test("an empty folder is one", () => {
  const folder = { name: "./vhost.d/", type: "5" };
  expect(unpacked(tarOf([folder, ...entriesOf(files)]))?.hasFolder("vhost.d")).toBe(true);
  expect(unpacked(zipOf([{ name: "vhost.d/" }, ...entriesOf(files)]))?.hasFolder("vhost.d")).toBe(
    true,
  );
});

test("long names of GNU tar and of pax are read", () => {
  const name = `${"folder/".repeat(8)}${"x".repeat(120)}.conf`;
  const long = [
    { name: "././@LongLink", type: "L", content: `${name}\0` },
    { name: name.slice(0, 99), content: "a" },
  ];
  expect(unpacked(tarOf(long))?.paths()).toEqual([name]);
  const line = (length: number) => `${length} path=${name}\n`;
  const pax = [
    { name: "pax", type: "x", content: line(line(100).length) },
    { name: name.slice(0, 99), content: "a" },
  ];
  expect(unpacked(tarOf(pax))?.paths()).toEqual([name]);
});

test.each(["server {}", "PK is no archive", "", "{}"])("%j is no archive", (content) => {
  expect(unpacked(new TextEncoder().encode(content))).toBe(null);
});

describe("hostile", () => {
  test.each([
    ["../x", "leads out"],
    ["a/../../x", "leads out"],
    ["/etc/passwd", "leads out"],
    ["C:/x", "leads out"],
    [`${"a/".repeat(16)}x`, "deeper than 16"],
  ])("%s: %s", (name, says) => {
    for (const bytes of [tarOf([{ name, content: "x" }]), zipOf([{ name, content: "x" }])])
      expect(problem(() => unpacked(bytes)).message).toContain(says);
  });

  test.each([
    ["a symbolic link of tar", tarOf([{ name: "a", type: "2" }]), "is a link"],
    ["a hard link of tar", tarOf([{ name: "a", type: "1" }]), "is a link"],
    ["a device of tar", tarOf([{ name: "a", type: "3" }]), "neither a file nor a folder"],
    ["a link of zip", zipOf([{ name: "a", content: "/etc", mode: 0o120_777 }]), "is a link"],
    ["an encrypted file", zipOf([{ name: "a", content: "x", flags: 1 }]), "is encrypted"],
    ["a name twice", zipOf([{ name: "a" }, { name: "./a" }]), "is twice"],
    ["no files", tarOf([{ name: "a/", type: "5" }]), "has no files"],
    ["gzip of something else", gzipSync("hello"), "holds no tar archive"],
    ["half a gzip", gzipSync(tarOf(entriesOf(files))).subarray(0, 60), "damaged"],
    ["half a tar", tarOf(entriesOf(files)).subarray(0, 2048), "damaged"],
    ["half a zip", zipOf(entriesOf(files)).subarray(0, 60), "damaged"],
  ])("%s is refused", (_, bytes, says) => {
    const { status, message } = problem(() => unpacked(bytes));
    expect(message).toContain(says);
    expect(status).toBe(400);
  });

  test("a file that unpacks to more than the limit is not unpacked", () => {
    const limits = { ...TREE_LIMITS, bytes: 10_000 };
    const entry = (size: number) => [{ name: "a", content: new Uint8Array(size) }];
    for (const pack of [zipOf, (all: Parameters<typeof tarOf>[0]) => tarOf(all)]) {
      expect(unpacked(pack(entry(10_000)), limits)?.paths()).toEqual(["a"]);
      expect(problem(() => unpacked(pack(entry(10_001)), limits))).toEqual({
        status: 413,
        message: "the files are larger than 10000 bytes together",
      });
    }
    const bomb = gzipSync(new Uint8Array(50_000_000));
    expect(problem(() => unpacked(bomb, limits)).status).toBe(413);
  });

  test("one entry more than the limit is refused, and a million at once", () => {
    const limits = { ...TREE_LIMITS, entries: 3 };
    const many = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `${at}` }));
    expect(unpacked(tarOf(many(3)), limits)?.paths().length).toBe(3);
    expect(problem(() => unpacked(tarOf(many(4)), limits)).status).toBe(413);
    expect(problem(() => unpacked(zipOf(many(4)), limits)).status).toBe(413);
  });
});

test("every beginning of an archive, and each with a changed byte, is read or refused", () => {
  for (const whole of [tarOf(entriesOf(files)), zipOf(entriesOf(files))])
    for (let at = 0; at < whole.byteLength; at += 7) {
      const changed = new Uint8Array(whole);
      changed[at] = (changed[at] ?? 0) ^ 0xff;
      for (const bytes of [whole.subarray(0, at), changed])
        try {
          unpacked(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError);
        }
    }
});

test("files of a form keep their folders, and stay inside", async () => {
  const form = async (...names: readonly string[]) => {
    const data = new FormData();
    for (const name of names) data.append("file", new Blob(["x"]), name);
    const response = new Response(data);
    const type = response.headers.get("content-type") ?? "";
    return await filesOfForm(new Uint8Array(await response.arrayBuffer()), type);
  };
  expect((await form("traefik.yml", "dynamic/a.yml")).paths()).toEqual([
    "dynamic/a.yml",
    "traefik.yml",
  ]);
  const refused = (name: string) => form("a", name).catch(({ message }: Error) => message);
  expect(await refused("../b")).toContain("leads out");
  expect(await refused("a")).toContain("is twice");
});
