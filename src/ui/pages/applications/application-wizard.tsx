// Creates an application in four steps: domain, upstream, HTTPS, preview; validates each step before the next.
import { Box, Button, Group, Paper, Stack, Stepper, Text, TextInput } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { PageHead, Section } from "../../parts/page-layout.tsx";
import { type ResourceForm, useResourceForm } from "../../parts/resource-form.tsx";
import { AccessFields } from "./access-fields.tsx";
import {
  type ApplicationFieldsProps,
  DomainFields,
  UpstreamFields,
} from "./application-fields.tsx";
import {
  type ApplicationValues,
  fieldOf,
  hasField,
  isDomain,
  rules,
  toBody,
  toValues,
} from "./application-values.ts";
import { HttpsFields } from "./https-fields.tsx";
import { PlanStep } from "./plan-step.tsx";
import { asciiName } from "../../api/shown-names.ts";

const LIST = { href: pagePath("applications"), label: "Applications" };

const steps: readonly {
  readonly label: string;
  readonly fields: readonly string[];
}[] = [
  { label: "Domain", fields: ["domains", "name"] },
  { label: "Upstream", fields: ["upstream", "targets", "host_header", "policies.redirect.to"] },
  { label: "HTTPS", fields: [] },
  { label: "Review and create", fields: [] },
];

/** `template`: what is cloned. */
export function ApplicationWizard({
  template,
}: {
  readonly template: Partial<Read<"applications">>;
}) {
  const [, navigate] = useLocation();
  const [step, setStep] = useState(0);
  const [adopts, setAdopts] = useState(false);
  const { form, ...rest } = useResourceForm<"applications", ApplicationValues>({
    resource: "applications",
    source: null,
    template,
    toValues,
    toBody,
    validate: rules,
    fieldOf,
    hasField,
    secrets: ["new_user"],
    query: adopts ? { adopt: 1 } : {},
    onSaved: ({ id }) => navigate(pagePath("applications", id, "ready"), { replace: true }),
  });
  const frame = useRef<HTMLFormElement>(null);
  const before = useRef(step);
  useEffect(() => {
    if (before.current === step) return;
    before.current = step;
    const heading = frame.current?.querySelector<HTMLElement>("section h2");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus();
  }, [step]);
  const go = (wanted: number) => {
    const wrong = steps
      .slice(0, wanted)
      .findIndex(({ fields }) => fields.some((field) => form.validateField(field).hasError));
    setStep(wrong === -1 ? wanted : wrong);
  };
  return (
    <Box maw={760}>
      <PageHead
        title="New application"
        text="The gateway creates service, route and certificate."
        parent={LIST}
      />
      <form
        ref={frame}
        noValidate
        aria-label="New application"
        onSubmit={(event) => {
          event.preventDefault();
          // Enter goes to the next step, and never creates by accident.
          if (step < steps.length - 1) go(step + 1);
          else rest.submit(event);
        }}
      >
        <Steps step={step} onStep={go} />
        {step === 0 && <DomainStep form={form} />}
        {step === 1 && (
          <Section
            title="Upstream"
            text="The servers that the gateway forwards requests to, or a redirect."
          >
            <UpstreamFields form={form} />
          </Section>
        )}
        {step === 2 && <HttpsStep form={form} />}
        {step === 3 && (
          <PlanStep
            body={toBody(form.values)}
            adopts={adopts}
            onAdopt={setAdopts}
            onStep={go}
            failure={rest.failure}
          />
        )}
        <Buttons step={step} onStep={go} form={rest} />
      </form>
    </Box>
  );
}

interface StepsProps {
  readonly step: number;
  readonly onStep: (step: number) => void;
}

function Steps({ step, onStep }: StepsProps) {
  const isNarrow = useMediaQuery("(max-width: 48em)") ?? false;
  if (isNarrow)
    return (
      <Text size="sm" fw={600} mb="sm">
        Step {step + 1} of {steps.length}: {steps[step]?.label}
      </Text>
    );
  return (
    <Stepper active={step} onStepClick={onStep} size="sm" mb="md">
      {steps.map(({ label }) => (
        <Stepper.Step key={label} label={label} />
      ))}
    </Stepper>
  );
}

function DomainStep({ form }: ApplicationFieldsProps) {
  // The name follows the domain until the user edits it.
  const isOwn = useRef(
    form.values.name !== "" && form.values.name !== nameFor(form.values.domains[0] ?? ""),
  );
  return (
    <Section title="Domains" text="The host names of the application.">
      <Stack>
        <DomainFields
          form={form}
          onFirst={(domain) => {
            if (!isOwn.current) form.setFieldValue("name", nameFor(domain));
          }}
        />
        <TextInput
          label="Name"
          description="Display name"
          required
          {...form.getInputProps("name")}
          onChange={(event) => {
            isOwn.current = event.currentTarget.value !== "";
            form.setFieldValue("name", event.currentTarget.value);
          }}
        />
      </Stack>
    </Section>
  );
}

/** `*.shop.example.com` becomes `shop.example.com`. */
const nameFor = (domain: string): string =>
  isDomain(domain) ? asciiName(domain.trim().replace("*.", "")) : "";

function HttpsStep({ form }: ApplicationFieldsProps) {
  return (
    <>
      <Section title="HTTPS" text="The certificate and the redirect from HTTP.">
        <HttpsFields form={form} />
      </Section>
      <Section title="Access">
        <AccessFields form={form} />
      </Section>
    </>
  );
}

interface ButtonsProps extends StepsProps {
  readonly form: Omit<ResourceForm<never>, "form">;
}

function Buttons({ step, onStep, form }: ButtonsProps) {
  const isLast = step === steps.length - 1;
  return (
    <Paper withBorder p="sm" className="sticky-footer">
      <Group justify="space-between">
        {step === 0 ? (
          <Button component={Link} href={LIST.href} variant="default">
            Cancel
          </Button>
        ) : (
          <Button variant="default" onClick={() => onStep(step - 1)}>
            Back
          </Button>
        )}
        <Button type="submit" loading={form.isSaving}>
          {isLast ? "Create" : "Next"}
        </Button>
      </Group>
    </Paper>
  );
}
