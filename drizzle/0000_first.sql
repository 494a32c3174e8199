CREATE TABLE `listeners` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text
);

CREATE UNIQUE INDEX `listeners_id_unique` ON `listeners` (`id`);
CREATE UNIQUE INDEX `listeners_name_unique` ON `listeners` (`name`);
CREATE TABLE `meta` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);

CREATE TABLE `revisions` (
	`revision` integer PRIMARY KEY NOT NULL,
	`at` text NOT NULL,
	`actor` text NOT NULL,
	`summary` text NOT NULL,
	`change` text NOT NULL
);

CREATE TABLE `routes` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text
);

CREATE UNIQUE INDEX `routes_id_unique` ON `routes` (`id`);
CREATE UNIQUE INDEX `routes_name_unique` ON `routes` (`name`);
CREATE TABLE `services` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text
);

CREATE UNIQUE INDEX `services_id_unique` ON `services` (`id`);
CREATE UNIQUE INDEX `services_name_unique` ON `services` (`name`);
CREATE TABLE `settings` (
	`id` integer PRIMARY KEY NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL
);

CREATE TABLE `targets` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`service_id` text NOT NULL,
	`host` text NOT NULL,
	`port` integer,
	FOREIGN KEY (`service_id`) REFERENCES `services`(`id`) ON UPDATE no action ON DELETE no action
);

CREATE UNIQUE INDEX `targets_id_unique` ON `targets` (`id`);
CREATE UNIQUE INDEX `targets_address` ON `targets` (`service_id`,`host`,`port`);
CREATE INDEX `targets_service` ON `targets` (`service_id`);