// How the gateway finds out which targets of a service work; knows no target.
import { Select, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { DurationField, KeyValueField, ListField } from "../../parts/fields.tsx";
import { FoldedSection, SubHead } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";
import type { ServiceValues } from "./service-values.ts";

export function HealthFields({ form }: ServiceFieldsProps) {
  return (
    <FoldedSection
      title="Health checks"
      text="Targets that do not work get no traffic until they do again."
      summary={summaryOf(form.values.health)}
      fields={["health"]}
      errors={form.errors}
      isOpenAtFirst={form.values.health.active.enabled}
    >
      <PassiveFields form={form} />
      <ActiveFields form={form} />
      <NumberField
        label="Ignore health below (percent)"
        description="When fewer targets than this work, all are used, so that the last ones do not break down under the load. 0: never"
        {...{ max: 100, suffix: " %", empty: 0 }}
        {...form.getInputProps("health.panic_percent")}
      />
    </FoldedSection>
  );
}

function summaryOf({ active, passive }: ServiceValues["health"]): string {
  const learns = passive.enabled
    ? `Left out after ${passive.consecutive_failures} failures in a row`
    : "Does not learn from the traffic";
  const asks = active.enabled
    ? `asked every ${active.interval} s`
    : "not asked by the gateway itself";
  return `${learns}; ${asks}.`;
}

function PassiveFields({ form }: ServiceFieldsProps) {
  return (
    <Stack gap="sm">
      <Switch
        label="Learn from the traffic"
        description="A target that fails several times in a row is left out for a while"
        {...form.getInputProps("health.passive.enabled", { type: "checkbox" })}
      />
      {form.values.health.passive.enabled && (
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <NumberField
            label="Failures in a row"
            description="After so many it is left out"
            {...{ min: 1, empty: 5 }}
            {...form.getInputProps("health.passive.consecutive_failures")}
          />
          <ListField
            label="Statuses that count as failures"
            description="Beside connections that fail"
            {...form.getInputProps("health.passive.statuses")}
          />
          <DurationField
            label="Left out for"
            description="Longer each time"
            unit="s"
            {...form.getInputProps("health.passive.ejection_seconds")}
          />
          <DurationField
            label="Left out at most for"
            unit="s"
            {...form.getInputProps("health.passive.max_ejection_seconds")}
          />
          <NumberField
            label="Left out at once at most (percent)"
            description="Share of the targets; the last one that works never is"
            {...{ max: 100, suffix: " %", empty: 50 }}
            {...form.getInputProps("health.passive.max_ejection_percent")}
          />
        </SimpleGrid>
      )}
    </Stack>
  );
}

function ActiveFields({ form }: ServiceFieldsProps) {
  const { enabled, type } = form.values.health.active;
  return (
    <Stack gap="sm">
      <Switch
        label="Ask each target regularly"
        description="The gateway sends requests of its own, so that it knows before a visitor does"
        {...form.getInputProps("health.active.enabled", { type: "checkbox" })}
      />
      {enabled && (
        <>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <Select
              label="Kind of check"
              data={[
                { value: "http", label: "A request over HTTP" },
                { value: "https", label: "A request over HTTPS" },
                { value: "tcp", label: "A connection only" },
              ]}
              allowDeselect={false}
              {...form.getInputProps("health.active.type")}
            />
            <NumberField
              label="Port"
              description="Empty: the port of the traffic"
              {...{ min: 1, max: 65_535, isGrouped: false, placeholder: "the target's" }}
              {...form.getInputProps("health.active.port")}
            />
            <DurationField
              label="Between two checks"
              unit="s"
              {...form.getInputProps("health.active.interval")}
            />
            <DurationField
              label="Between two checks while it is unhealthy"
              unit="s"
              {...form.getInputProps("health.active.unhealthy_interval")}
            />
            <DurationField
              label="A check has failed after"
              unit="s"
              {...form.getInputProps("health.active.timeout")}
            />
            <NumberField
              label="Unhealthy after so many failures"
              {...{ min: 1, max: 100, empty: 3 }}
              {...form.getInputProps("health.active.unhealthy_threshold")}
            />
            <NumberField
              label="Healthy after so many successes"
              {...{ min: 1, max: 100, empty: 2 }}
              {...form.getInputProps("health.active.healthy_threshold")}
            />
          </SimpleGrid>
          {type !== "tcp" && <RequestOfCheck form={form} />}
        </>
      )}
    </Stack>
  );
}

function RequestOfCheck({ form }: ServiceFieldsProps) {
  return (
    <>
      <SubHead title="The request, and what it must bring" />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label="Path to ask for"
          description="As it is, without the path of the service"
          placeholder="/healthz"
          {...form.getInputProps("health.active.path")}
        />
        <Select
          label="Method"
          description="HEAD brings no body"
          data={["GET", "HEAD", "POST", "OPTIONS"]}
          allowDeselect={false}
          {...form.getInputProps("health.active.method")}
        />
      </SimpleGrid>
      <ListField
        label="Statuses of a working target"
        description="Such as 204 or 200-299"
        {...form.getInputProps("health.active.expect_statuses")}
      />
      <Textarea
        label="Text that the body must contain"
        description="Empty: the body does not matter"
        autosize
        {...form.getInputProps("health.active.expect_body")}
        value={form.values.health.active.expect_body ?? ""}
      />
      <KeyValueField
        label="Headers of the check"
        {...form.getInputProps("health.active.headers")}
      />
    </>
  );
}
