CREATE TABLE "sluice"."node_start" (
	"node" text PRIMARY KEY NOT NULL,
	"start" uuid NOT NULL,
	"place" text NOT NULL,
	"address" text NOT NULL,
	"beats" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"rival" text,
	"rival_at" timestamp with time zone
);
