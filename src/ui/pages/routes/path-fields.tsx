// The paths of a route as rows, with what each matches, and a path to test them; knows no service.
import { Code, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { AddButton, RemoveButton } from "../../parts/fields.tsx";
import { SubHead } from "../../parts/folded-section.tsx";
import { type FieldInputProps, useFormFacts } from "../../parts/schema/field-frame.tsx";
import { type PathMatch, matchesPath, pathMatchOf, pathProblem } from "./route-text.ts";

const newPath: PathMatch = { type: "prefix", value: "" };

/** The input of `paths` in the form of a route. */
export function PathFields({ info, value, onChange }: FieldInputProps) {
  const { isReadOnly } = useFormFacts();
  const rows = value as readonly (Partial<PathMatch> | string)[];
  const paths = rows.map((row) =>
    typeof row === "string" ? pathMatchOf(row) : { ...newPath, ...row },
  );
  return (
    <Stack gap="xs" role="group" aria-label={info.label}>
      <SubHead
        title={info.label}
        text={
          paths.length > 0
            ? "One of them must match."
            : "Empty: every path of these hosts, or the gRPC methods below only."
        }
      />
      {paths.map((path, index) => (
        <PathRow
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other key, and their inputs are controlled
          key={index}
          path={path}
          index={index}
          onChange={(next) => onChange(rows.with(index, next))}
          onRemove={() => onChange(rows.toSpliced(index, 1))}
        />
      ))}
      {!isReadOnly && <AddButton label="Add a path" onClick={() => onChange([...rows, {}])} />}
      {paths.some((path) => path.value !== "") && <PathTrial paths={paths} />}
    </Stack>
  );
}

const TYPES = [
  { value: "prefix", label: "Prefix" },
  { value: "exact", label: "Exact" },
  { value: "regex", label: "Regex" },
];

const examples: Readonly<Record<PathMatch["type"], string>> = {
  prefix: "/shop",
  exact: "/health",
  regex: "^/users/[0-9]+$",
};

/** What the row matches, with an example that it does not match. */
function meaningOf({ type, value }: PathMatch): string {
  const shown = value === "" ? examples[type] : value;
  const bare = shown.replace(/\/$/, "");
  switch (type) {
    case "prefix":
      return bare === ""
        ? "Every path."
        : `Matches ${bare}, ${bare}/ and ${bare}/anything, but not ${bare}ping.`;
    case "exact":
      return `Matches ${shown} only, and nothing below it.`;
    case "regex":
      return value === ""
        ? "A regular expression, searched in the whole path: ^ is its start, $ its end. ^/users/[0-9]+$ matches /users/42."
        : `Matches every path that contains ${shown}${shown.startsWith("^") ? ", from its start" : ", anywhere"}.`;
    default:
      return type satisfies never;
  }
}

interface RowProps {
  readonly path: PathMatch;
  readonly index: number;
  readonly onChange: (path: PathMatch) => void;
  readonly onRemove: () => void;
}

function PathRow({ path, index, onChange, onRemove }: RowProps) {
  const { errors, isReadOnly } = useFormFacts();
  const at = `paths.${index}`;
  return (
    <Group gap={6} align="flex-start" wrap="nowrap" data-field={at}>
      <Group gap={6} align="flex-start" style={{ flex: 1 }}>
        <Select
          aria-label={`Path type ${index + 1}`}
          data={TYPES}
          allowDeselect={false}
          style={{ flex: "0 0 9rem" }}
          value={path.type}
          onChange={(type) => onChange({ ...path, type: type as PathMatch["type"] })}
        />
        <TextInput
          aria-label={`Path ${index + 1}`}
          placeholder={examples[path.type]}
          style={{ flex: "1 1 14rem" }}
          styles={{
            input: { fontFamily: "var(--mantine-font-family-monospace)" },
            description: { overflowWrap: "anywhere" },
          }}
          value={path.value}
          onChange={({ currentTarget }) => onChange({ ...path, value: currentTarget.value })}
          error={errors[`${at}.value`] ?? errors[at] ?? pathProblem(path)}
          description={meaningOf(path)}
          inputWrapperOrder={["label", "input", "error", "description"]}
        />
      </Group>
      {!isReadOnly && <RemoveButton label={`Remove path ${index + 1}`} onClick={onRemove} />}
    </Group>
  );
}

/** Tests a path while typing; the route test checks hosts and conditions too. */
function PathTrial({ paths }: { readonly paths: readonly PathMatch[] }) {
  const [tried, setTried] = useState("");
  const path = tried === "" || tried.startsWith("/") ? tried : `/${tried}`;
  const matching = paths.findIndex(
    (match) => match.value !== "" && matchesPath(match, path) === true,
  );
  return (
    <Group gap="sm" align="flex-end">
      <TextInput
        label="Test a path"
        placeholder="/shop/cart"
        size="xs"
        value={tried}
        onChange={(event) => setTried(event.currentTarget.value)}
        style={{ flex: "0 1 16rem" }}
      />
      <Text size="sm" c="dimmed" pb={5} aria-live="polite">
        {path === "" ? (
          "does it match?"
        ) : matching === -1 ? (
          <>
            <Code>{path}</Code> does not match
          </>
        ) : (
          <>
            <Code>{path}</Code> matches path {matching + 1}
          </>
        )}
      </Text>
    </Group>
  );
}
