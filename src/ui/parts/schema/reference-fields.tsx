// Fields of a schema form that name something else: stored secrets, services, consumers; show no secret.
import { Anchor, Autocomplete, Group, PasswordInput, Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { isDocument } from "../../api/merge-patch.ts";
import { includesRole, useResource, useResourceList, useRole } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { type SpotProps, useFormFacts, useTexts } from "./field-frame.tsx";

/** `{"$secret": "name"}` stands for a secret that is kept under a name. */
function referenceOf(value: unknown): string | null {
  const name = isDocument(value) ? value["$secret"] : undefined;
  return typeof name === "string" ? name : null;
}

/** Typed here, or the name of one that is kept already. */
export function SecretField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot, true);
  const { isStored, isReadOnly } = useFormFacts();
  const isAdmin = includesRole(useRole(), "admin");
  const name = referenceOf(value);
  const mode = name === null ? "typed" : "named";
  const change = () => onChange(mode === "typed" ? { $secret: "" } : undefined);
  // Only an admin may have a named secret sent anywhere.
  const mayChange = isAdmin || mode === "named" || spot.schema["x-stays"] !== undefined;
  const link = !isReadOnly && mayChange && (
    <Anchor component="button" type="button" size="xs" onClick={change}>
      {mode === "typed" ? "Use a stored secret" : "Type it here"}
    </Anchor>
  );
  const description = (
    <Group component="span" gap="xs" justify="space-between">
      <span>{texts.description}</span>
      {link}
    </Group>
  );
  if (name !== null)
    return <SecretName texts={{ ...texts, description }} name={name} onChange={onChange} />;
  return (
    <PasswordInput
      {...texts}
      description={description}
      autoComplete="new-password"
      placeholder={isStored && value === undefined ? "Unchanged; type to replace it" : ""}
      value={typeof value === "string" ? value : ""}
      onChange={({ currentTarget: { value: next } }) => onChange(next === "" ? undefined : next)}
    />
  );
}

interface NameProps {
  readonly texts: ReturnType<typeof useTexts>;
  readonly name: string;
  readonly onChange: (value: unknown) => void;
}

function SecretName({ texts, name, onChange }: NameProps) {
  const isAdmin = includesRole(useRole(), "admin");
  return isAdmin ? (
    <KnownSecrets texts={texts} name={name} onChange={onChange} />
  ) : (
    <Autocomplete
      {...texts}
      placeholder="Name of the secret"
      value={name}
      onChange={(next) => onChange({ $secret: next })}
    />
  );
}

function KnownSecrets({ texts, name, onChange }: NameProps) {
  const { data = [] } = useResourceList("secrets");
  return (
    <Autocomplete
      {...texts}
      data={data.map((secret) => secret.name)}
      placeholder={data.length === 0 ? "There is none yet: see Secrets" : "Name of the secret"}
      value={name}
      onChange={(next) => onChange({ $secret: next })}
    />
  );
}

export function ServiceField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot);
  const { data = [] } = useResourceList("services");
  const known = data.find(({ id, name }) => id === value || name === value);
  const data_ = data.map(({ id, name }) => ({ value: id, label: name }));
  const isUnknown = typeof value === "string" && value !== "" && known === undefined;
  return (
    <Select
      {...texts}
      searchable
      clearable
      placeholder="Choose a service"
      data={isUnknown ? [...data_, { value, label: value }] : data_}
      value={known?.id ?? (isUnknown ? value : null)}
      onChange={(next) => onChange(next ?? (spot.isNeeded ? undefined : null))}
    />
  );
}

/** How many the list offers; there may be a hundred thousand. */
export const MAX_OFFERED = 50;

/** Consumers whose name has what was typed. */
export function useConsumerSearch(text: string): readonly Read<"consumers">[] {
  const [asked] = useDebouncedValue(text, 250);
  const { data = [] } = useResourceList("consumers", { q: asked, limit: MAX_OFFERED });
  return data;
}

export function ConsumerField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot);
  return (
    <ConsumerSelect
      {...texts}
      value={typeof value === "string" ? value : null}
      onChange={(next) => onChange(next ?? (spot.isNeeded ? undefined : null))}
    />
  );
}

interface ConsumerSelectProps extends Partial<ReturnType<typeof useTexts>> {
  /** Id or username. */
  readonly value: string | null;
  readonly onChange: (id: string | null) => void;
}

/** A list of consumers that is asked for while somebody types. */
export function ConsumerSelect({ value, onChange, ...texts }: ConsumerSelectProps) {
  const [text, setText] = useState("");
  const found = useConsumerSearch(text);
  const own = useResource("consumers", value).data?.value;
  const all = own === undefined ? found : [...found, own];
  const known = all.find(({ id, username }) => id === value || username === value);
  const choices = new Map(all.map(({ id, username }) => [id, username]));
  if (value !== null && known === undefined) choices.set(value, value);
  return (
    <Select
      {...texts}
      searchable
      clearable
      placeholder="Search a consumer"
      nothingFoundMessage="No consumer is called so"
      data={[...choices].map(([id, label]) => ({ value: id, label }))}
      value={known?.id ?? value}
      onChange={onChange}
      onSearchChange={setText}
    />
  );
}
