// Users and roles of single sign-on; knows no provider.
import { ActionIcon, Group, Input, Select, Stack, Switch, TextInput } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { AddButton, ListField } from "../../parts/fields.tsx";
import { HelpText, Section } from "../../parts/page-layout.tsx";
import { useState } from "react";
import type { SsoFieldsProps } from "./client-fields.tsx";
import type { SsoValues } from "./sso-values.ts";

type RoleMap = SsoValues["role_map"];
const roles = ["viewer", "editor", "admin"];

export function UserFields({ form }: SsoFieldsProps) {
  const { auto_provision: isOpen, default_role: role, allowed_domains: domains } = form.values;
  return (
    <Section title="Users and roles" text="Allowed users and their roles.">
      <Stack>
        <Switch
          label="Create users automatically"
          description="At their first sign-in. Off: only existing users can sign in, matched by e-mail address"
          {...form.getInputProps("auto_provision", { type: "checkbox" })}
        />
        <ListField
          label="Domains"
          description="Allowed domains of e-mail addresses. Empty: any"
          placeholder="example.com"
          {...form.getInputProps("allowed_domains")}
        />
        <TextInput
          label="Groups claim"
          description="Such as groups or realm_access.roles. Empty: no roles from the provider"
          placeholder="groups"
          maw={420}
          {...form.getInputProps("role_claim")}
        />
        {form.values.role_claim !== "" && (
          <RoleMapField
            value={form.values.role_map}
            error={form.errors["role_map"]}
            onChange={(map) => form.setFieldValue("role_map", map)}
          />
        )}
        <Select
          label="Default role"
          data={[{ value: "", label: "None: sign-in is denied" }, ...roles]}
          allowDeselect={false}
          maw={420}
          {...form.getInputProps("default_role")}
        />
        {isOpen && role !== "" && domains.length === 0 && (
          <HelpText>
            Every account of the provider can sign in as {role}. Restrict the domains unless the
            provider is private.
          </HelpText>
        )}
      </Stack>
    </Section>
  );
}

interface Row {
  readonly id: number;
  readonly group: string;
  readonly role: string;
}

interface RoleMapProps {
  readonly value: RoleMap;
  readonly onChange: (map: RoleMap) => void;
  readonly error?: React.ReactNode;
}

/** Roles by group. Of two rows with one group, the last wins. */
function RoleMapField({ value, onChange, error }: RoleMapProps) {
  const [rows, setRows] = useState(() => toRows(value));
  // Changed from outside, such as by a merge.
  const shown = JSON.stringify(toMap(rows)) === JSON.stringify(value) ? rows : toRows(value);
  const change = (next: readonly Row[]) => {
    setRows(next);
    onChange(toMap(next));
  };
  const edit = (id: number, part: Partial<Row>) =>
    change(shown.map((row) => (row.id === id ? { ...row, ...part } : row)));
  const nextId = Math.max(0, ...shown.map(({ id }) => id)) + 1;
  return (
    <Input.Wrapper
      label="Roles by group"
      description="The highest role of all groups applies, at each sign-in"
      error={error}
      labelElement="div"
    >
      <Stack gap={6} mt={4} role="group" aria-label="Roles by group">
        {shown.map((row) => (
          <Group key={row.id} gap={6} wrap="nowrap" maw={420}>
            <TextInput
              aria-label="Group"
              placeholder="Group"
              value={row.group}
              onChange={(event) => edit(row.id, { group: event.currentTarget.value })}
              style={{ flex: 1 }}
            />
            <Select
              aria-label={`Role of ${row.group === "" ? "the group" : row.group}`}
              data={roles}
              allowDeselect={false}
              value={row.role}
              onChange={(role) => edit(row.id, { role: role ?? "viewer" })}
              w={120}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove ${row.group === "" ? "the row" : row.group}`}
              onClick={() => change(shown.filter(({ id }) => id !== row.id))}
            >
              <IconX size={16} />
            </ActionIcon>
          </Group>
        ))}
        <AddButton
          label="Add a group"
          onClick={() => setRows([...shown, { id: nextId, group: "", role: "viewer" }])}
        />
      </Stack>
    </Input.Wrapper>
  );
}

const toRows = (map: RoleMap): readonly Row[] =>
  Object.entries(map).map(([group, role], id) => ({ id, group, role }));
const toMap = (rows: readonly Row[]): RoleMap =>
  Object.fromEntries(
    rows.filter(({ group }) => group !== "").map((row) => [row.group, row.role]),
  ) as RoleMap;
