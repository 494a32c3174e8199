// Schema form fields that reference objects: stored secrets, services, consumers; shows no secret.
import { Anchor, Autocomplete, Group, MultiSelect, PasswordInput, Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { Link } from "wouter";
import { isDocument } from "../../api/merge-patch.ts";
import { includesRole, useResource, useResourceList, useRole } from "../../api/queries.ts";
import { nameOf, type Read, type ResourceKey, resources } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { type FieldInputProps, useFormFacts, useTexts } from "./field-frame.tsx";
import { mayBeNamed, shapeOf } from "./shape.ts";

/** `{"$secret": "name"}` references a stored secret by name. */
function referenceOf(value: unknown): string | null {
  const name = isDocument(value) ? value["$secret"] : undefined;
  return typeof name === "string" ? name : null;
}

/** A new secret, or a reference to a stored one. */
export function SecretField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info, true);
  const { isStored, isReadOnly, isPage } = useFormFacts();
  const isAdmin = includesRole(useRole(), "admin");
  const name = referenceOf(value);
  const mode = name === null ? "typed" : "named";
  const change = () => onChange(mode === "typed" ? { $secret: "" } : undefined);
  // Only admins may use stored secrets in destinations.
  const mayChange = isAdmin || mode === "named" || info.schema["x-stays"] !== undefined;
  const isRemovable = isStored && (!info.isNeeded || shapeOf(info.schema).isNullable);
  const remove = isPage && isRemovable && !isReadOnly && (
    <Anchor
      component="button"
      type="button"
      size="xs"
      onClick={() => onChange(value === null ? undefined : null)}
    >
      {value === null ? "Keep the stored value" : "Remove the stored value"}
    </Anchor>
  );
  const link = !isReadOnly && mayChange && mayBeNamed(info.schema) && (
    <Anchor component="button" type="button" size="xs" onClick={change}>
      {mode === "typed" ? "Use a stored secret" : "Enter a value"}
    </Anchor>
  );
  const description = (
    <Group component="span" gap="xs" justify="space-between">
      <span>{texts.description}</span>
      {remove}
      {link}
    </Group>
  );
  if (name !== null)
    return <SecretName texts={{ ...texts, description }} name={name} onChange={onChange} />;
  return (
    <PasswordInput
      {...texts}
      description={description}
      {...(info.isInRow === true
        ? { inputWrapperOrder: ["label", "input", "error", "description"] as const }
        : {})}
      autoComplete="new-password"
      placeholder={
        value === null
          ? "Removed when saved"
          : isStored && value === undefined
            ? "Unchanged; type to replace it"
            : (info.schema.form?.example ?? "")
      }
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

/** An object of the collection that the schema names, by its id. */
export function ReferenceField(props: FieldInputProps) {
  const { of = "", only = {} } = shapeOf(props.info.schema).schema.form ?? {};
  if (of === "consumers") return <ConsumerField {...props} />;
  return <ListedField {...props} of={of as ResourceKey} only={only} />;
}

export const ServiceField = (props: FieldInputProps) => (
  <ListedField {...props} of="services" only={{}} />
);

interface ListedProps extends FieldInputProps {
  readonly of: ResourceKey;
  readonly only: Readonly<Record<string, readonly unknown[]>>;
}

function ListedField({ info, value, onChange, of, only }: ListedProps) {
  const { description, ...texts } = useTexts(info);
  const { offered, known, isEmpty } = useOffered(of, only, value === null ? [] : [value]);
  const { word, plural } = resources[of];
  return (
    <Select
      {...texts}
      description={
        <>
          {description}
          {isEmpty && (
            <>
              . There are no {plural} for it yet:{" "}
              <Anchor
                component={Link}
                href={pagePath(of.replace("/", "-"), "new")}
                size="xs"
                underline="always"
              >
                create one
              </Anchor>
            </>
          )}
        </>
      }
      searchable
      clearable={!info.isNeeded}
      limit={MAX_LISTED}
      placeholder={info.isNeeded ? `Choose a ${word}` : "none"}
      nothingFoundMessage={`No ${word} with this name`}
      data={offered}
      value={known(value)}
      onChange={(next) => onChange(next ?? (info.isNeeded ? undefined : null))}
    />
  );
}

export function ReferencesField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info, true);
  const { of = "", only = {} } = info.schema.form ?? {};
  const chosen = Array.isArray(value) ? (value as unknown[]) : [];
  const { offered, known } = useOffered(of as ResourceKey, only, chosen);
  return (
    <MultiSelect
      {...texts}
      searchable
      clearable
      limit={MAX_LISTED}
      placeholder={chosen.length === 0 ? "all" : ""}
      nothingFoundMessage="No matches"
      data={offered}
      value={chosen.flatMap((each) => known(each) ?? [])}
      onChange={onChange}
    />
  );
}

const MAX_LISTED = 100;

/** Objects to choose, with the chosen ones; an unknown one may be named, or not be read yet. */
function useOffered(of: ResourceKey, only: ListedProps["only"], chosen: readonly unknown[]) {
  const { data } = useResourceList(of);
  const all = (data ?? []) as readonly { readonly id: string; readonly name?: string | null }[];
  const isOffered = (object: object) =>
    Object.entries(only).every(([name, values]) =>
      values.includes((object as Record<string, unknown>)[name]),
    );
  const find = (key: unknown) => all.find(({ id, name }) => id === key || name === key);
  const known = (key: unknown) =>
    find(key)?.id ?? (typeof key === "string" && key !== "" ? key : null);
  const fitting = all.filter(
    (object) => isOffered(object) || chosen.some((key) => find(key) === object),
  );
  const others = chosen.filter((key) => find(key) === undefined).flatMap((key) => known(key) ?? []);
  return {
    known,
    isEmpty: data !== undefined && fitting.length === 0,
    offered: [
      ...fitting.map((object) => ({ value: object.id, label: nameOf(object) })),
      ...others.map((value) => ({ value, label: data === undefined ? "…" : value })),
    ],
  };
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
