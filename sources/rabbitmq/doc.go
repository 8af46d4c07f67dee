// Package rabbitmq is a source whose resources are the queues of one virtual host of RabbitMQ, classic or quorum, with and
// without single active consumer.
package rabbitmq
