// Form fields for active and passive health checks of a service; knows no target.
import { Select, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { DurationField, KeyValueField, ListField } from "../../parts/fields.tsx";
import { FoldedSection, SubHead } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";
import { isGrpc, isHttp2, type ServiceValues } from "./service-values.ts";

export function HealthFields({ form }: ServiceFieldsProps) {
  return (
    <FoldedSection
      title="Health checks"
      text="Unhealthy targets get no traffic until they recover."
      summary={summaryOf(form.values.health)}
      fields={["health"]}
      errors={form.errors}
      isOpenAtFirst={form.values.health.active.enabled}
    >
      <PassiveFields form={form} />
      <ActiveFields form={form} />
      <NumberField
        label="Panic threshold (percent)"
        description="When fewer targets than this are healthy, all targets get traffic, so that the healthy ones are not overloaded. 0: never"
        max={100}
        suffix=" %"
        empty={0}
        {...form.getInputProps("health.panic_percent")}
      />
    </FoldedSection>
  );
}

function summaryOf({ active, passive }: ServiceValues["health"]): string {
  const passiveText = passive.enabled
    ? `Ejection after ${passive.consecutive_failures} consecutive failures`
    : "No passive checks";
  const activeText = active.enabled
    ? `active check every ${active.interval} s`
    : "no active checks";
  return `${passiveText}; ${activeText}.`;
}

function PassiveFields({ form }: ServiceFieldsProps) {
  return (
    <Stack gap="sm">
      <Switch
        label="Passive health checks"
        description="Ejects a target after several consecutive failures"
        {...form.getInputProps("health.passive.enabled", { type: "checkbox" })}
      />
      {form.values.health.passive.enabled && (
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <NumberField
            label="Consecutive failures"
            description="Failures before the target is ejected"
            min={1}
            empty={5}
            {...form.getInputProps("health.passive.consecutive_failures")}
          />
          <ListField
            label="Status codes that count as failures"
            description="In addition to connection errors"
            {...form.getInputProps("health.passive.statuses")}
          />
          <DurationField
            label="Ejection time"
            description="Increases with each ejection"
            unit="s"
            {...form.getInputProps("health.passive.ejection_seconds")}
          />
          <DurationField
            label="Maximum ejection time"
            unit="s"
            {...form.getInputProps("health.passive.max_ejection_seconds")}
          />
          <NumberField
            label="Maximum ejected targets (percent)"
            description="Share of the targets; the last healthy target is never ejected"
            max={100}
            suffix=" %"
            empty={50}
            {...form.getInputProps("health.passive.max_ejection_percent")}
          />
        </SimpleGrid>
      )}
    </Stack>
  );
}

function ActiveFields({ form }: ServiceFieldsProps) {
  const { enabled, type } = form.values.health.active;
  const hasGrpc = isHttp2(form.values.protocol) || isGrpc(type);
  return (
    <Stack gap="sm">
      <Switch
        label="Active health checks"
        description="The gateway probes each target and finds failures before clients do"
        {...form.getInputProps("health.active.enabled", { type: "checkbox" })}
      />
      {enabled && (
        <>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <Select
              label="Check type"
              data={[
                { value: "http", label: "HTTP request" },
                { value: "https", label: "HTTPS request" },
                { value: "tcp", label: "TCP connection" },
                ...(hasGrpc ? GRPC_CHECKS : []),
              ]}
              allowDeselect={false}
              {...form.getInputProps("health.active.type")}
            />
            <NumberField
              label="Port"
              description="Empty: the target's port"
              min={1}
              max={65_535}
              isGrouped={false}
              placeholder="the target's"
              {...form.getInputProps("health.active.port")}
            />
            <DurationField
              label="Interval"
              unit="s"
              {...form.getInputProps("health.active.interval")}
            />
            <DurationField
              label="Interval while unhealthy"
              unit="s"
              {...form.getInputProps("health.active.unhealthy_interval")}
            />
            <DurationField
              label="Timeout"
              unit="s"
              {...form.getInputProps("health.active.timeout")}
            />
            <NumberField
              label="Failures until unhealthy"
              min={1}
              max={100}
              empty={3}
              {...form.getInputProps("health.active.unhealthy_threshold")}
            />
            <NumberField
              label="Successes until healthy"
              min={1}
              max={100}
              empty={2}
              {...form.getInputProps("health.active.healthy_threshold")}
            />
          </SimpleGrid>
          {isGrpc(type) ? (
            <TextInput
              label="gRPC service to check"
              description="The name that the target registered with grpc.health.v1.Health. Empty: the server as a whole"
              placeholder="helloworld.Greeter"
              {...form.getInputProps("health.active.grpc_service")}
            />
          ) : (
            type !== "tcp" && <CheckRequestFields form={form} />
          )}
        </>
      )}
    </Stack>
  );
}

const GRPC_CHECKS = [
  { value: "grpc", label: "gRPC health check" },
  { value: "grpcs", label: "gRPC health check over TLS" },
];

function CheckRequestFields({ form }: ServiceFieldsProps) {
  return (
    <>
      <SubHead title="Request and expected response" />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label="Request path"
          description="Sent as is, without the path of the service"
          placeholder="/healthz"
          {...form.getInputProps("health.active.path")}
        />
        <Select
          label="Method"
          description="HEAD returns no body"
          data={["GET", "HEAD", "POST", "OPTIONS"]}
          allowDeselect={false}
          {...form.getInputProps("health.active.method")}
        />
      </SimpleGrid>
      <ListField
        label="Expected status codes"
        description="Such as 204 or 200-299"
        {...form.getInputProps("health.active.expect_statuses")}
      />
      <Textarea
        label="Expected text in the body"
        description="Empty: any body"
        autosize
        {...form.getInputProps("health.active.expect_body")}
        value={form.values.health.active.expect_body ?? ""}
      />
      <KeyValueField label="Request headers" {...form.getInputProps("health.active.headers")} />
    </>
  );
}
