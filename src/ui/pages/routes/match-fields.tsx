// The match conditions of a route that most routes need: hosts and paths; knows no service.
import { Alert, Code, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { AddButton, ListField, RemoveButton } from "../../parts/fields.tsx";
import { SubHead } from "../../parts/folded-section.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { RouteFieldsProps } from "./route-form.tsx";
import { type PathMatch, matchesPath } from "./route-text.ts";
import { newPath, type RouteValues } from "./route-values.ts";

export function MatchFields({ form }: RouteFieldsProps) {
  const { hosts, paths, grpc_methods: methods } = form.values;
  const isEverything =
    hosts.length + methods.length === 0 && paths.every(({ value }) => value === "");
  return (
    <Section
      title="Match"
      text="A request must match one of the hosts, one of the paths and every condition."
    >
      <Stack>
        <ListField
          label="Hosts"
          description="Host names such as shop.example.com; *.example.com matches every name below. Empty: any"
          placeholder={hosts.length === 0 ? "shop.example.com" : "add a host"}
          {...form.getInputProps("hosts")}
        />
        <PathFields form={form} />
        {isEverything && (
          <Alert color="yellow" title="Catch-all route">
            Without a host and a path, the route matches every request that no other route matches.
            Set at least a host unless you intend this.
          </Alert>
        )}
      </Stack>
    </Section>
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

function PathFields({ form }: RouteFieldsProps) {
  const { paths } = form.values;
  return (
    <Stack gap="xs" role="group" aria-label="Paths">
      <SubHead title="Paths" text={emptyText(form.values)} />
      {paths.map((path, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other key, and their inputs are controlled
        <PathRow key={index} form={form} path={path} index={index} />
      ))}
      <AddButton label="Add a path" onClick={() => form.insertListItem("paths", newPath)} />
      {paths.some(({ value }) => value !== "") && <PathTrial paths={paths} />}
    </Stack>
  );
}

function emptyText({ paths, grpc_methods: methods }: RouteValues): string {
  if (paths.length > 0) return "One of them must match.";
  return methods.length > 0
    ? "Empty: the gRPC methods below only."
    : "Empty: every path of these hosts.";
}

interface RowProps extends RouteFieldsProps {
  readonly path: PathMatch;
  readonly index: number;
}

function PathRow({ form, path, index }: RowProps) {
  const at = `paths.${index}`;
  return (
    <Group gap={6} align="flex-start" wrap="nowrap">
      <Group gap={6} align="flex-start" style={{ flex: 1 }}>
        <Select
          aria-label={`Path type ${index + 1}`}
          data={TYPES}
          allowDeselect={false}
          style={{ flex: "0 0 9rem" }}
          {...form.getInputProps(`${at}.type`)}
          onChange={(type) => {
            form.setFieldValue(at, { ...path, type: type as PathMatch["type"] });
            form.clearFieldError(`${at}.value`);
          }}
        />
        <TextInput
          aria-label={`Path ${index + 1}`}
          placeholder={examples[path.type]}
          style={{ flex: "1 1 14rem" }}
          styles={{
            input: { fontFamily: "var(--mantine-font-family-monospace)" },
            description: { overflowWrap: "anywhere" },
          }}
          {...form.getInputProps(`${at}.value`)}
          error={form.errors[`${at}.value`] ?? form.errors[at]}
          description={meaningOf(path)}
          inputWrapperOrder={["label", "input", "error", "description"]}
        />
      </Group>
      <RemoveButton
        label={`Remove path ${index + 1}`}
        onClick={() => form.removeListItem("paths", index)}
      />
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
