// Schema form fields that reference objects: stored secrets, services, consumers; shows no secret.
import { Anchor, Autocomplete, Group, PasswordInput, Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { isDocument } from "../../api/merge-patch.ts";
import { includesRole, useResource, useResourceList, useRole } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { type FieldInputProps, useFormFacts, useTexts } from "./field-frame.tsx";

/** `{"$secret": "name"}` references a stored secret by name. */
function referenceOf(value: unknown): string | null {
  const name = isDocument(value) ? value["$secret"] : undefined;
  return typeof name === "string" ? name : null;
}

/** A new secret, or a reference to a stored one. */
export function SecretField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info, true);
  const { isStored, isReadOnly } = useFormFacts();
  const isAdmin = includesRole(useRole(), "admin");
  const name = referenceOf(value);
  const mode = name === null ? "typed" : "named";
  const change = () => onChange(mode === "typed" ? { $secret: "" } : undefined);
  // Only admins may use stored secrets in destinations.
  const mayChange = isAdmin || mode === "named" || info.schema["x-stays"] !== undefined;
  const link = !isReadOnly && mayChange && (
    <Anchor component="button" type="button" size="xs" onClick={change}>
      {mode === "typed" ? "Use a stored secret" : "Enter a value"}
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
      placeholder={data.length === 0 ? "No secrets yet: see Secrets" : "Name of the secret"}
      value={name}
      onChange={(next) => onChange({ $secret: next })}
    />
  );
}

export function ServiceField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
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
      onChange={(next) => onChange(next ?? (info.isNeeded ? undefined : null))}
    />
  );
}

/** Maximum number of options; there may be a hundred thousand consumers. */
const MAX_OFFERED = 50;

/** Consumers whose name contains the text. */
function useConsumerSearch(text: string): readonly Read<"consumers">[] {
  const [asked] = useDebouncedValue(text, 250);
  const { data = [] } = useResourceList("consumers", { q: asked, limit: MAX_OFFERED });
  return data;
}

export function ConsumerField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  return (
    <ConsumerSelect
      {...texts}
      value={typeof value === "string" ? value : null}
      onChange={(next) => onChange(next ?? (info.isNeeded ? undefined : null))}
    />
  );
}

interface ConsumerSelectProps extends Partial<ReturnType<typeof useTexts>> {
  /** Id or username. */
  readonly value: string | null;
  readonly onChange: (id: string | null) => void;
}

/** A select that searches consumers while typing. */
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
      nothingFoundMessage="No consumer with this name"
      data={[...choices].map(([id, label]) => ({ value: id, label }))}
      value={known?.id ?? value}
      onChange={onChange}
      onSearchChange={setText}
    />
  );
}
