// Consumers of Kong with their groups and credentials.
import { hashToken } from "../../crypto/token.ts";
import { invalid } from "../../model/error.ts";
import {
  type CredentialAlgorithm,
  credentialAlgorithms,
  isSymmetric,
} from "../../model/credential.ts";
import { hashBasic } from "../../control/credential-secrets.ts";
import type { Members } from "../members.ts";
import {
  commonOf,
  groupName,
  isVaultReference,
  type KongContext,
  referenceOf,
  remember,
} from "./context.ts";

interface Owner {
  readonly id: string;
  readonly username: string;
  readonly label: string;
}

const lists = {
  keyauth_credentials: addKey,
  basicauth_credentials: addPassword,
  jwt_secrets: addTokenKey,
  hmacauth_credentials: addSigner,
} as const;
type List = keyof typeof lists;
const listNames = Object.keys(lists) as List[];

/** Adds consumers with their credentials and groups, nested or in lists of the file. */
export async function addConsumers(context: KongContext): Promise<void> {
  const { root } = context;
  const loose = looseParts(root);
  const areGrouped =
    root.has("consumer_group_consumers") ||
    root.objects("consumer_groups").some((group) => group.has("consumers"));
  for (const members of root.objects("consumers")) {
    const username = members.text("username") ?? members.text("custom_id");
    if (username === null) throw invalid(`${members.path}.username`, "is required");
    members.setLabel(`consumer "${username}"`);
    const id = members.text("id");
    const words = [username, id].flatMap((word) => word ?? []);
    const partsOf = (list: string) => [
      ...members.objects(list),
      ...words.flatMap((word) => loose.take(list, word)),
    ];
    const owner = addConsumer(members, { context, username, id, acls: partsOf("acls") });
    for (const list of listNames)
      for (const part of partsOf(list)) await lists[list](part, owner, context);
    if (areGrouped || members.list("groups").length > 0) context.grouped.push(owner.id);
    members.omit("groups", "consumer groups are not imported; acl groups are");
    for (const name of ["oauth2_credentials", "mtls_auth_credentials"])
      members.omit(name, "the gateway has no such credentials");
    for (const plugin of members.objects("plugins"))
      context.plugins.push({
        members: plugin,
        owner: owner.label,
        scope: { consumer_id: owner.id },
      });
  }
  for (const part of loose.rest()) part.drop("its consumer is not in the file");
}

/** Credentials that are not nested in their consumer. */
function looseParts(root: Members) {
  const byOwner = new Map<string, Members[]>();
  for (const list of [...listNames, "acls"])
    for (const part of root.objects(list)) {
      const key = `${list} ${referenceOf(part, "consumer") ?? ""}`;
      byOwner.set(key, [...(byOwner.get(key) ?? []), part]);
    }
  return {
    take(list: string, owner: string): readonly Members[] {
      const found = byOwner.get(`${list} ${owner}`) ?? [];
      byOwner.delete(`${list} ${owner}`);
      return found;
    },
    rest: () => [...byOwner.values()].flat(),
  };
}

function addConsumer(
  members: Members,
  {
    context,
    username,
    id,
    acls,
  }: { context: KongContext; username: string; id: string | null; acls: readonly Members[] },
): Owner {
  const { output } = context;
  const groups = acls.flatMap((acl) => {
    const group = acl.text("group") ?? "";
    acl.setLabel(`group "${group}" of ${members.label}`);
    acl.raw("id");
    acl.raw("consumer");
    acl.omit("tags", "groups have no tags");
    for (const name of ["created_at", "ws_id"]) acl.raw(name);
    const name = groupName(context, group);
    if (name !== group) acl.changed("group", `became ${name}`);
    output.report.imported(acl.label, "became a group of its consumer");
    return name === "" ? [] : [name];
  });
  const target = { key: id ?? username, label: members.label };
  const made = output.add("consumers", target, {
    username,
    custom_id: members.text("custom_id"),
    groups: [...new Set(groups)],
    ...commonOf(members),
  });
  output.report.imported(members.label, "became a consumer");
  remember(context, { kind: "consumers", words: [id, members.text("username")], id: made });
  return { id: made, username, label: members.label };
}

/** Reads the common fields of credentials and sets a label without the secret. */
function begin(members: Members, { label }: Owner, what: string) {
  members.setLabel(`${what} of ${label}`);
  members.raw("consumer");
  const id = members.text("id");
  return { id, common: commonOf(members) };
}

function addKey(members: Members, owner: Owner, { output }: KongContext): void {
  const { id, common } = begin(members, owner, "API key");
  const key = members.text("key") ?? "";
  const ttl = members.number("ttl") ?? 0;
  const created = members.number("created_at");
  if (ttl > 0 && created === null)
    return members.drop("it has a ttl, and the file has no created_at");
  const expires_at = ttl > 0 ? new Date(((created ?? 0) + ttl) * 1000).toISOString() : null;
  if (key === "" || isVaultReference(key)) return members.drop("the file does not contain the key");
  const hash = hashToken(key);
  output.add(
    "credentials",
    { key: id ?? hash, label: members.label },
    {
      consumer_id: owner.id,
      type: "key",
      secret_hash: hash,
      // Of a short key the beginning would be most of it.
      prefix: key.length >= 16 ? key.slice(0, 8) : null,
      ...(expires_at === null ? {} : { expires_at }),
      ...common,
    },
  );
  output.report.imported(members.label, "became a credential");
}

async function addPassword(members: Members, owner: Owner, context: KongContext): Promise<void> {
  const { output } = context;
  const { id, common } = begin(members, owner, "password");
  const identifier = members.text("username") ?? owner.username;
  const password = members.text("password") ?? "";
  if (password === "" || isVaultReference(password))
    return members.drop("the file does not contain the password");
  if (context.isHashed || /^[0-9a-f]{40}$/.test(password))
    return members.drop("the password has Kong's own hash format: set a new one");
  output.add(
    "credentials",
    { key: id ?? `${owner.id} ${identifier}`, label: members.label },
    {
      consumer_id: owner.id,
      type: "basic",
      identifier,
      secret_hash: await hashBasic(password, null),
      ...common,
    },
  );
  output.report.imported(members.label, "became a credential");
}

function addTokenKey(members: Members, owner: Owner, context: KongContext): void {
  const { output } = context;
  const { id, common } = begin(members, owner, "JWT credential");
  const algorithm = (members.text("algorithm") ?? "HS256") as CredentialAlgorithm;
  const identifier = members.text("key");
  const secret = members.text("secret") ?? "";
  const publicKey = members.text("rsa_public_key");
  if (!credentialAlgorithms.includes(algorithm))
    return members.drop(`the algorithm ${algorithm} is unknown`);
  const isShared = isSymmetric(algorithm);
  if (identifier === null || isVaultReference(secret) || (isShared && secret === ""))
    return members.drop("the file does not contain its key and secret");
  context.jwtAlgorithms.add(algorithm);
  output.add(
    "credentials",
    { key: id ?? `${owner.id} ${identifier}`, label: members.label },
    {
      consumer_id: owner.id,
      type: "jwt",
      identifier,
      algorithm,
      public_key: isShared ? null : publicKey,
      sealed_secret: isShared ? { plain: secret } : null,
      ...common,
    },
  );
  output.report.imported(members.label, "became a credential");
}

function addSigner(members: Members, owner: Owner, { output }: KongContext): void {
  const { id, common } = begin(members, owner, "HMAC key");
  const identifier = members.text("username") ?? owner.username;
  const secret = members.text("secret") ?? "";
  if (secret === "" || isVaultReference(secret))
    return members.drop("the file does not contain the secret");
  output.add(
    "credentials",
    { key: id ?? `${owner.id} ${identifier}`, label: members.label },
    {
      consumer_id: owner.id,
      type: "hmac",
      identifier,
      algorithm: "hmac-sha256",
      sealed_secret: { plain: secret },
      ...common,
    },
  );
  output.report.changed(members.label, "clients must sign requests according to RFC 9421");
}
