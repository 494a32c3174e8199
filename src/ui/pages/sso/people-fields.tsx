// Who may come in and as what; knows nothing of the provider.
import { ActionIcon, Group, Input, Select, Stack, Switch, TextInput } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { AddButton, ListField } from "../../parts/fields.tsx";
import { HelpText, Section } from "../../parts/page-layout.tsx";
import { useState } from "react";
import type { SsoFieldsProps } from "./client-fields.tsx";
import type { SsoValues } from "./sso-values.ts";

type RoleMap = SsoValues["role_map"];
const roles = ["viewer", "editor", "admin"];

export function PeopleFields({ form }: SsoFieldsProps) {
  const { auto_provision: isOpen, default_role: role, allowed_domains: domains } = form.values;
  return (
    <Section title="People" text="Who may come in, and as what.">
      <Stack>
        <Switch
          label="Create users by themselves"
          description="At their first sign-in. Turned off, only people come in for whom there is a user with their e-mail address"
          {...form.getInputProps("auto_provision", { type: "checkbox" })}
        />
        <ListField
          label="Domains"
          description="Of e-mail addresses that may sign in. Empty: any"
          placeholder="example.com"
          {...form.getInputProps("allowed_domains")}
        />
        <TextInput
          label="Claim with the groups"
          description="Such as groups, or realm_access.roles. Empty: the provider decides no role"
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
          label="Role of new people in none of these groups"
          data={[{ value: "", label: "They are refused" }, ...roles]}
          allowDeselect={false}
          maw={420}
          {...form.getInputProps("default_role")}
        />
        {isOpen && role !== "" && domains.length === 0 && (
          <HelpText>
            Everybody who has an account at the provider comes in as {role}. Name your domain unless
            the provider is yours alone.
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

/** Groups and the roles that they give. Two rows with one group count once: the last. */
function RoleMapField({ value, onChange, error }: RoleMapProps) {
  const [rows, setRows] = useState(() => toRows(value));
  // Something else than this field has changed the value, such as merging.
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
      description="Of several groups the highest role counts, at each sign-in"
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
