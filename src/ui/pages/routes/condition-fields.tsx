// Further match conditions of a route: methods, headers, parameters, cookies, networks, listeners; knows no service.
import { Group, MultiSelect, Select, Stack, TextInput } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import { AddButton, ListField, RemoveButton } from "../../parts/fields.tsx";
import { FoldedSection, SubHead } from "../../parts/folded-section.tsx";
import type { RouteFieldsProps } from "./route-form.tsx";
import { hasValue, newCondition, type RouteValues } from "./route-values.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

export function ConditionFields({ form }: RouteFieldsProps) {
  const listeners = useResourceList("listeners");
  const count = countOf(form.values);
  return (
    <FoldedSection
      title="Conditions"
      text="Match by method, header, query parameter, cookie, client network or listener."
      summary={count === 0 ? "None." : count === 1 ? "1 condition." : `${count} conditions.`}
      isOpenAtFirst={count > 0}
      fields={[
        ...["methods", "headers", "query", "cookies", "client_cidrs", "protocols"],
        "listener_ids",
      ]}
      errors={form.errors}
    >
      <ListField
        label="Methods"
        description="Empty: all"
        suggestions={METHODS}
        {...form.getInputProps("methods")}
      />
      <ListField
        label="Client networks"
        description="Such as 10.0.0.0/8 or 2001:db8::/32. Empty: any"
        {...form.getInputProps("client_cidrs")}
      />
      <MultiSelect label="Schemes" data={["http", "https"]} {...form.getInputProps("protocols")} />
      <MultiSelect
        label="Listeners"
        description="Only requests received there. Empty: all"
        placeholder={form.values.listener_ids.length === 0 ? "all" : ""}
        data={(listeners.data ?? []).map(({ id, name, port }) => ({
          value: id,
          label: `${name} (port ${port})`,
        }))}
        clearable
        {...form.getInputProps("listener_ids")}
      />
      <Conditions form={form} field="headers" title="Headers" example="x-version" />
      <Conditions form={form} field="query" title="Query parameters" example="beta" />
      <Conditions form={form} field="cookies" title="Cookies" example="group" />
    </FoldedSection>
  );
}

function countOf(values: RouteValues): number {
  const { methods, headers, query, cookies, client_cidrs, protocols, listener_ids } = values;
  const lists = [methods, client_cidrs, listener_ids].filter(({ length }) => length > 0).length;
  const named = headers.length + query.length + cookies.length;
  return lists + named + (protocols.length === 1 ? 1 : 0);
}

const OPS = [
  { value: "equals", label: "is" },
  { value: "regex", label: "matches" },
  { value: "present", label: "exists" },
  { value: "absent", label: "does not exist" },
];

interface Props extends RouteFieldsProps {
  readonly field: "headers" | "query" | "cookies";
  readonly title: string;
  readonly example: string;
}

function Conditions({ form, field, title, example }: Props) {
  const rows = form.values[field];
  return (
    <Stack gap="xs" role="group" aria-label={title}>
      <SubHead title={title} text={rows.length === 0 ? undefined : "All conditions must match."} />
      {rows.map((row, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other key, and their inputs are controlled
        <Group key={index} gap={6} align="flex-start" wrap="nowrap">
          <Group gap={6} align="flex-start" style={{ flex: 1 }}>
            <TextInput
              aria-label={`${title}: name ${index + 1}`}
              placeholder={example}
              style={{ flex: "1 1 9rem" }}
              {...form.getInputProps(`${field}.${index}.name`)}
              error={form.errors[`${field}.${index}.name`] ?? form.errors[`${field}.${index}`]}
            />
            <Select
              aria-label={`${title}: comparison ${index + 1}`}
              data={OPS}
              allowDeselect={false}
              style={{ flex: "0 0 8rem" }}
              {...form.getInputProps(`${field}.${index}.op`)}
            />
            {hasValue(row.op) && (
              <TextInput
                aria-label={`${title}: value ${index + 1}`}
                placeholder={row.op === "regex" ? "^v[0-9]+$" : "value"}
                style={{ flex: "2 1 9rem" }}
                {...form.getInputProps(`${field}.${index}.value`)}
              />
            )}
          </Group>
          <RemoveButton
            label={`Remove ${row.name === "" ? "the condition" : row.name}`}
            onClick={() => form.removeListItem(field, index)}
          />
        </Group>
      ))}
      <AddButton
        label={`Add ${field === "headers" ? "a header" : field === "query" ? "a parameter" : "a cookie"}`}
        onClick={() => form.insertListItem(field, newCondition)}
      />
    </Stack>
  );
}
